package migrate

import (
	"strings"
	"testing"
)

// TestFalseRefusals converts what a manifest alone does not tell.
func TestFalseRefusals(t *testing.T) {
	t.Parallel()
	const (
		login = `apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: aws}
spec: {provider: {aws: {service: SecretsManager, region: eu-central-1, role: "arn:aws:iam::444455556666:role/other", auth: {jwt: {serviceAccountRef: {name: reader}}}}}}
`
		account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader, namespace: shop, annotations: {eks.amazonaws.com/role-arn: \"arn:aws:iam::111122223333:role/a\"}}\n"
		google  = `apiVersion: external-secrets.io/v1
kind: ClusterSecretStore
metadata: {name: google}
spec: {provider: {gcpsm: {projectID: shop, auth: {secretRef: {secretAccessKeySecretRef: {name: google, key: key.json, namespace: shop}}}}}}
`
		secret = `apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: db, namespace: shop}
spec:
  secretStoreRef: {name: google, kind: ClusterSecretStore}
  data: [{secretKey: a, remoteRef: {key: a}}]
`
		gke = `apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {serviceAccountName: web, volumes: [{name: s, csi: {driver: secrets-store-gke.csi.k8s.io, volumeAttributes: {secretProviderClass: web}}}]}}}
---
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata: {name: web, namespace: shop}
spec: {provider: gke, parameters: {secrets: "- {resourceName: projects/shop-prod/secrets/a/versions/latest, path: a}"}}
`
	)
	alone := strings.Replace(login, `role: "arn:aws:iam::444455556666:role/other", `, "", 1)
	cases := map[string]struct {
		reason  string
		files   map[string]string
		verdict Verdict
		want    string // Part of the last file.
	}{
		"Namespace":       {"Kustomize sets the namespace of the store, so its ServiceAccount is known.", map[string]string{"a/account.yaml": account, "a/kustomization.yaml": "namespace: shop\nresources: [account.yaml, store.yaml]\n", "a/store.yaml": login}, Exact, "additionalRoles:\n  - arn:aws:iam::111122223333:role/a\n"},
		"RunTime":         {"Both operators read the only role from the annotation, whichever ServiceAccount of the input it is.", map[string]string{"a/account.yaml": strings.Replace(account, ", namespace: shop", "", 1), "b/account.yaml": strings.NewReplacer(", namespace: shop", "", "role/a", "role/b").Replace(account), "c/store.yaml": alone}, Exact, "  auth:\n    serviceAccountRef: {name: reader}\n"},
		"NamespaceAbove":  {"A kustomization above sets it.", map[string]string{"a/account.yaml": account, "a/kustomization.yaml": "namespace: shop\nresources: [account.yaml, base]\n", "a/base/kustomization.yaml": "resources: [store.yaml]\n", "z/store.yaml": "", "a/base/store.yaml": login}, Exact, ""},
		"GKE":             {"The add-on of GKE has a provider of its own.", map[string]string{"a.yaml": gke}, Changed, "kind: GCPSecretManager"},
		"FluxDuration":    {"Flux substitutes a duration.", map[string]string{"a.yaml": google, "b.yaml": strings.Replace(secret, "spec:\n", "spec:\n  refreshInterval: ${interval:=1h}\n", 1)}, Exact, "refreshInterval: ${interval:=1h}"},
		"FluxTemplate":    {"Flux substitutes a part of a template.", map[string]string{"a.yaml": google, "b.yaml": strings.Replace(secret, "spec:\n", "spec:\n  target: {template: {data: {a: \"{{ .a | ${filter} }}\"}}}\n", 1)}, Exact, "storeRef: {name: google, kind: ClusterGCPSecretManager}"},
		"FluxAddress":     {"Flux substitutes an address.", map[string]string{"a.yaml": strings.Replace(google, "gcpsm: {projectID: shop, auth: {secretRef: {secretAccessKeySecretRef: {name: google, key: key.json, namespace: shop}}}}", "vault: {server: \"${vault}\", path: secret, auth: {tokenSecretRef: {name: vault, key: token, namespace: vault}}}", 1)}, Exact, `server: "${vault}"`},
		"Candidates":      {"All stores that it can be become the same.", map[string]string{"a.yaml": google, "b.yaml": strings.Replace(secret, "name: google", "name: \"${store}\"", 1)}, Changed, "kind: ClusterGCPSecretManager"},
		"OtherNamespace":  {"A store of its name is in another namespace.", map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems: []\n", "b.yaml": strings.NewReplacer("ClusterSecretStore", "SecretStore", "{name: google}", "{name: google, namespace: mail}", ", namespace: shop}}", "}}").Replace(google), "c.yaml": strings.Replace(secret, "ClusterSecretStore", "SecretStore", 1)}, Changed, "kind: GCPSecretManager"},
		"Different":       {"Stores that become different ones are refused.", map[string]string{"a.yaml": google, "b.yaml": strings.NewReplacer("name: google}\nspec", "name: vault}\nspec", "gcpsm: {projectID: shop, auth: {secretRef: {secretAccessKeySecretRef: {name: google, key: key.json, namespace: shop}}}}", "vault: {server: \"https://vault\", path: secret, auth: {tokenSecretRef: {name: vault, key: token, namespace: vault}}}").Replace(google), "c.yaml": strings.Replace(secret, "name: google", "name: \"${store}\"", 1)}, Unsupported, "secretStoreRef"},
		"RoleOfValues":    {"Values of a chart have the role.", map[string]string{"a/values.yaml": "external-secrets:\n  serviceAccount:\n    name: reader\n    annotations: {eks.amazonaws.com/role-arn: \"arn:aws:iam::111122223333:role/b\"}\n", "b.yaml": login}, Changed, "additionalRoles:\n  - arn:aws:iam::111122223333:role/b\n"},
		"RoleOfRelease":   {"Values of a HelmRelease have it.", map[string]string{"a.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec:\n  values:\n    serviceAccount:\n      annotations:\n        eks.amazonaws.com/role-arn: arn:aws:iam::111122223333:role/b\n", "b.yaml": login}, Changed, "additionalRoles:\n  - arn:aws:iam::111122223333:role/b\n"},
		"RolesOfValues":   {"Two roles are one too many.", map[string]string{"a/values.yaml": "serviceAccount: {annotations: {eks.amazonaws.com/role-arn: \"arn:aws:iam::111122223333:role/b\"}}\n", "b/values.yaml": "serviceAccount: {annotations: {eks.amazonaws.com/role-arn: \"arn:aws:iam::111122223333:role/c\"}}\n", "c.yaml": login}, Unsupported, "external-secrets.io/v1"},
		"RoleOfAnother":   {"A role of another ServiceAccount does not count.", map[string]string{"a/values.yaml": "serviceAccount: {name: other, annotations: {eks.amazonaws.com/role-arn: \"arn:aws:iam::111122223333:role/b\"}}\n", "c.yaml": login}, Unsupported, "external-secrets.io/v1"},
		"EqualNamespaces": {"A namespace can be named twice.", map[string]string{"a.yaml": strings.Replace(google, "spec: {", "spec: {conditions: [{namespaces: [shop, shop]}], ", 1)}, Exact, "namespaces: [shop]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Convert(sourcesOf(tc.files), Options{Namespace: "default", GKECluster: "projects/a/locations/b/clusters/c"})
			if err != nil {
				t.Fatal(err)
			}
			if r.Report.Verdict() != tc.verdict {
				t.Errorf("%s\nthe verdict is %s, want %s:\n%s", tc.reason, r.Report.Verdict(), tc.verdict, strings.Join(r.Report.Wide(), "\n"))
			}
			if last := string(r.Files[len(r.Files)-1].Content); !strings.Contains(last, tc.want) {
				t.Errorf("%s\nthe last file is\n%s\nwant in it %q", tc.reason, last, tc.want)
			}
		})
	}
}
