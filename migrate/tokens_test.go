package migrate

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestTokenValues holds which ServiceAccounts the values of the chart name.
func TestTokenValues(t *testing.T) {
	t.Parallel()
	const (
		store   = "apiVersion: external-secrets.io/v1\nkind: SecretStore\nmetadata: {name: vault, namespace: shop}\nspec: {provider: {vault: {server: \"https://vault\", path: secret, auth: {kubernetes: {mountPath: kubernetes, role: shop, serviceAccountRef: {name: reader}}}}}}\n"
		begin   = "# Values of the chart direct-secrets for the converted objects.\n\nprovider-vault:\n  enabled: true\n  serviceAccountTokens:\n"
		enabled = "    enabled: true\n"
		unknown = "    # The list %LIST is left out, so all are allowed: the conversion does not know them for %OBJECT.\n"
	)
	without := func(list, object string) string {
		return strings.NewReplacer("%LIST", list, "%OBJECT", object).Replace(unknown)
	}
	other := strings.NewReplacer("{name: vault, namespace: shop}", "{name: other, namespace: web}", "{name: reader}", "{name: agent}").Replace(store)
	kubernetes := strings.NewReplacer("vault: {server: \"https://vault\", path: secret, auth: {kubernetes: {mountPath: kubernetes, role: shop, serviceAccountRef: {name: reader}}}}", "kubernetes: {auth: {serviceAccount: {name: reader}}}").Replace(store)
	noNamespace := strings.Replace(store, ", namespace: shop", "", 1)
	cluster := strings.NewReplacer("SecretStore", "ClusterSecretStore", ", namespace: shop", "").Replace(store)
	cases := map[string]struct {
		reason string
		chart  string
		files  map[string]string
		want   string
	}{
		"Known":            {"All are known.", "", map[string]string{"a.yaml": store, "b.yaml": other}, begin + enabled + "    namespaces:\n    - shop\n    - web\n    names:\n    - agent\n    - reader\n"},
		"OtherField":       {"A store of Kubernetes names it in another field.", "", map[string]string{"a.yaml": kubernetes}, strings.Replace(begin, "vault", "kubernetes", 1) + enabled + "    namespaces:\n    - shop\n    names:\n    - reader\n"},
		"ClusterNamespace": {"A cluster store names the namespace.", "", map[string]string{"a.yaml": strings.Replace(cluster, "{name: reader}", "{name: reader, namespace: platform}", 1)}, begin + enabled + "    namespaces:\n    - platform\n    names:\n    - reader\n"},
		"Cluster":          {"A cluster store uses the ServiceAccount of each namespace.", "", map[string]string{"a.yaml": cluster, "b.yaml": other}, begin + without("namespaces", "ClusterSecretStore vault") + enabled + "    names:\n    - agent\n    - reader\n"},
		"NoNamespace":      {"The namespace is not known before the manifest is applied.", "", map[string]string{"a.yaml": noNamespace}, begin + without("namespaces", "SecretStore vault") + enabled + "    names:\n    - reader\n"},
		"Kustomization":    {"A kustomization gives the namespace.", "", map[string]string{"kustomization.yaml": "namespace: given\nresources: [a.yaml]\n", "a.yaml": noNamespace}, begin + enabled + "    namespaces:\n    - given\n    names:\n    - reader\n"},
		"Overlays":         {"Kustomizations give different namespaces.", "", map[string]string{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": store, "x/kustomization.yaml": "namespace: x\nresources: [../base]\n", "y/kustomization.yaml": "namespace: y\nresources: [../base]\n"}, begin + without("namespaces", "SecretStore shop/vault") + enabled + "    names:\n    - reader\n"},
		"Patch":            {"A kustomization changes the name.", "", map[string]string{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": store, "x/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: SecretStore}\n  patch: |-\n    - op: replace\n      path: /spec/provider/vault/auth/kubernetes/serviceAccountRef/name\n      value: patched\n"}, begin + enabled + "    namespaces:\n    - shop\n    names:\n    - patched\n    - reader\n"},
		"Chart":            {"Actions of a template make both.", "shop", map[string]string{"a.yaml": strings.NewReplacer("namespace: shop", "namespace: \"{{ .Release.Namespace }}\"", "{name: reader}", "{name: \"{{ .Values.account }}\"}").Replace(store)}, begin + without("namespaces", "SecretStore {{ .Release.Namespace }}/vault") + without("names", "SecretStore {{ .Release.Namespace }}/vault") + enabled},
		"Flux":             {"A variable of Flux is the name.", "", map[string]string{"a.yaml": strings.Replace(store, "{name: reader}", "{name: \"${account}\"}", 1)}, begin + without("names", "SecretStore shop/vault") + enabled + "    namespaces:\n    - shop\n"},
		"Unsupported":      {"A store that is not converted does not count.", "", map[string]string{"a.yaml": store, "b.yaml": strings.Replace(other, "path: secret", "nosuch: a", 1)}, begin + enabled + "    namespaces:\n    - shop\n    names:\n    - reader\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources := sourcesOf(tc.files)
			for i := range sources {
				sources[i].Chart = tc.chart
			}
			r, err := Convert(sources, Options{Namespace: "default"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.want, string(r.Values)); diff != "" {
				t.Errorf("%s -want, +got:\n%s\n%s", tc.reason, diff, strings.Join(r.Report.Wide(), "\n"))
			}
		})
	}
}
