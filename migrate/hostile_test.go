package migrate

import (
	"strings"
	"testing"
)

// TestNothingSilent has trees whose conversion is not certain. Such a part stays as it is, or is in the report.
func TestNothingSilent(t *testing.T) {
	t.Parallel()
	const (
		store = `apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: aws}
spec: {provider: {aws: {service: SecretsManager, region: eu-central-1, auth: {secretRef: {accessKeyIDSecretRef: {name: aws, key: id}, secretAccessKeySecretRef: {name: aws, key: key}}}}}}
`
		vault = `apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: vault}
spec: {provider: {vault: {server: "https://vault", path: "{{ .Values.mount }}", auth: {tokenSecretRef: {name: vault, key: token}}}}}
`
		secret = `apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: db}
spec:
  secretStoreRef: {name: aws}
  data:
  - secretKey: a
    remoteRef: {key: a}
`
		patch = "resources: [../base]\npatches:\n- target: "
	)
	base := map[string]string{"base/kustomization.yaml": "resources: [store.yaml, db.yaml]\n", "base/store.yaml": store, "base/db.yaml": secret}
	cases := map[string]struct {
		reason string
		chart  bool // All files are templates of a chart.
		files  map[string]string
		file   string // One of the files; in it is want, and in the report is report.
		want   string
		report string
	}{
		"Words":          {"An action stands for the same in all files of a chart, and for nothing else.", true, map[string]string{"v.yaml": vault, "db.yaml": strings.NewReplacer("{name: aws}", "{name: vault}", "{key: a}", `{key: "{{ .Values.team }}/app"}`).Replace(secret)}, "db.yaml", `{key: "{{ .Values.team }}/app"}`, ""},
		"SameWord":       {"A key that begins with the path of its store.", true, map[string]string{"v.yaml": vault, "db.yaml": strings.NewReplacer("{name: aws}", "{name: vault}", "{key: a}", `{key: "{{ .Values.mount }}/data/x"}`).Replace(secret)}, "db.yaml", `{key: "x"}`, ""},
		"Unedited":       {"Nothing is converted towards a store that stays as it is.", false, map[string]string{"a.yaml": strings.Replace(store, "{name: aws}\nspec", "{name: aws, labels: {a: &k b, *k : c}}\nspec", 1), "b.yaml": secret}, "b.yaml", "secretStoreRef: {name: aws}", "its text cannot be edited"},
		"UneditedPart":   {"No part goes whose user stays.", false, map[string]string{"a.yaml": "apiVersion: secrets.hashicorp.com/v1beta1\nkind: VaultConnection\nmetadata: {name: c, namespace: shop}\nspec: {address: \"https://vault\"}\n---\napiVersion: secrets.hashicorp.com/v1beta1\nkind: VaultAuth\nmetadata: {name: a, namespace: shop}\nspec: {vaultConnectionRef: c, method: kubernetes, mount: kubernetes, kubernetes: {role: a, serviceAccount: a}}\n---\napiVersion: secrets.hashicorp.com/v1beta1\nkind: VaultStaticSecret\nmetadata: {name: s, namespace: shop, labels: {a: &k b, *k : c}}\nspec: {vaultAuthRef: a, mount: kv, type: kv-v2, path: a, destination: {name: s, create: true}}\n"}, "a.yaml", "kind: VaultConnection", "its text cannot be edited"},
		"UneditedPatch":  {"A kustomization that cannot be edited is reported.", false, map[string]string{"prod/kustomization.yaml": "commonAnnotations: {a: &k b, *k : c}\n" + patch + "{kind: ExternalSecret, version: v1, name: db}\n  patch: |-\n    - op: replace\n      path: /spec/secretStoreRef/name\n      value: aws\n"}, "prod/kustomization.yaml", "path: /spec/secretStoreRef", "its text cannot be edited"},
		"Role":           {"An overlay changes the role of a ServiceAccount.", false, map[string]string{"base/store.yaml": strings.Replace(store, "{secretRef: {accessKeyIDSecretRef: {name: aws, key: id}, secretAccessKeySecretRef: {name: aws, key: key}}}", "{jwt: {serviceAccountRef: {name: reader}}}, role: 'arn:aws:iam::444455556666:role/other'", 1), "base/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader, annotations: {eks.amazonaws.com/role-arn: \"arn:aws:iam::111122223333:role/base\"}}\n", "prod/kustomization.yaml": "resources: [../base]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: ServiceAccount\n    metadata: {name: reader, annotations: {eks.amazonaws.com/role-arn: \"arn:aws:iam::444455556666:role/prod\"}}\n"}, "base/store.yaml", "additionalRoles:\n  - arn:aws:iam::111122223333:role/base\n", "a kustomization changes the role"},
		"Inserted":       {"Nothing new is in a block under a condition.", true, map[string]string{"a.yaml": store, "db.yaml": strings.Replace(secret, "metadata: {name: db}", "metadata: {name: db, labels: {team: x}}", 1) + "  {{- if .Values.extra }}\n  - secretKey: b\n    remoteRef: {key: b}\n  {{- end }}\n"}, "db.yaml", "secretStoreRef", "depends on a condition of the template"},
		"Kind":           {"A Kind under a condition.", true, map[string]string{"a.yaml": store, "db.yaml": strings.Replace(secret, "  secretStoreRef: {name: aws}\n", "  secretStoreRef:\n    name: aws\n    {{- if .Values.kind }}\n    kind: SecretStore\n    {{- end }}\n", 1)}, "db.yaml", "secretStoreRef", "depends on a condition of the template"},
		"Copied":         {"Labels under a condition.", true, map[string]string{"a.yaml": store, "db.yaml": strings.Replace(secret, "metadata: {name: db}", "metadata:\n  name: db\n  {{- if .Values.labels }}\n  labels: {a: b}\n  {{- end }}", 1)}, "db.yaml", "secretStoreRef", "depends on a condition of the template"},
		"Quotes":         {"Copied labels keep their quotes.", true, map[string]string{"a.yaml": store, "db.yaml": strings.Replace(secret, "{name: db}", `{name: db, labels: {team: "{{ .Values.team }}"}}`, 1)}, "db.yaml", "          team: \"{{ .Values.team }}\"", ""},
		"Fields":         {"An action can yield fields.", true, map[string]string{"a.yaml": store, "db.yaml": secret + "  {{- include \"target\" . | nindent 2 }}\n"}, "db.yaml", "secretStoreRef", "yields fields, which are not known"},
		"Metadata":       {"An action can yield labels.", true, map[string]string{"a.yaml": store, "db.yaml": strings.Replace(secret, "metadata: {name: db}", "metadata:\n  name: db\n  {{- include \"meta\" . | nindent 2 }}", 1)}, "db.yaml", "storeRef", "yields metadata"},
		"Capabilities":   {"A condition names the group.", true, map[string]string{"a.yaml": "{{- if .Capabilities.APIVersions.Has \"external-secrets.io/v1\" }}\n" + store + "{{- end }}\n"}, "a.yaml", "AWSSecretsManager", "an action of a template names the API group"},
		"NoKind":         {"A target without a Kind.", false, map[string]string{"prod/kustomization.yaml": patch + "{name: db}\n  patch: |-\n    - op: replace\n      path: /spec/secretStoreRef/name\n      value: aws\n"}, "prod/kustomization.yaml", "secretStoreRef", "names no single Kind"},
		"Kinds":          {"A target for several Kinds.", false, map[string]string{"prod/kustomization.yaml": patch + "{kind: ExternalSecret|PushSecret}\n  patch: |-\n    - op: replace\n      path: /spec/secretStoreRef/name\n      value: aws\n"}, "prod/kustomization.yaml", "secretStoreRef", "names no single Kind"},
		"Select":         {"A replacement without a Kind.", false, map[string]string{"prod/kustomization.yaml": "resources: [../base]\nreplacements:\n- source: {kind: ConfigMap, name: a, fieldPath: data.a}\n  targets: [{select: {name: db}, fieldPaths: [spec.secretStoreRef.name]}]\n"}, "prod/kustomization.yaml", "secretStoreRef", "names no single Kind"},
		"Shared":         {"A file of patches for converted objects and others.", false, map[string]string{"p.yaml": "- op: replace\n  path: /spec/refreshInterval\n  value: 1m\n", "prod/kustomization.yaml": "resources: [../base]\npatches: [{path: ../p.yaml, target: {kind: ExternalSecret}}]\n", "web/kustomization.yaml": "patches: [{path: ../p.yaml, target: {kind: Deployment}}]\n"}, "p.yaml", "refreshInterval", "becomes different ones"},
		"Documents":      {"Several documents in a patch.", false, map[string]string{"prod/kustomization.yaml": "resources: [../base]\npatches:\n- patch: |\n    apiVersion: external-secrets.io/v1\n    kind: ExternalSecret\n    metadata: {name: db}\n    spec: {refreshInterval: 1m}\n    ---\n    apiVersion: external-secrets.io/v1\n    kind: SecretStore\n    metadata: {name: aws}\n    spec: {controller: a}\n"}, "prod/kustomization.yaml", "external-secrets.io", "cannot be read as one document"},
		"Elsewhere":      {"An object of the same name in another folder is another one.", false, map[string]string{"app/kustomization.yaml": strings.Replace(patch, "../base", "https://example.com/base", 1) + "{kind: ExternalSecret, name: db}\n  patch: |-\n    - op: replace\n      path: /spec/secretStoreRef/name\n      value: aws\n"}, "app/kustomization.yaml", "secretStoreRef", "the input has no object that it is for"},
		"Service":        {"A patch makes another Kind of a store.", false, map[string]string{"prod/kustomization.yaml": patch + "{kind: SecretStore, name: aws}\n  patch: |-\n    - op: replace\n      path: /spec/provider/aws/service\n      value: ParameterStore\n"}, "prod/kustomization.yaml", "/spec/provider/aws/service", "makes another Kind"},
		"Ignored":        {"A mention next to a converted patch is reported.", false, map[string]string{"app.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  ignoreDifferences: [{group: external-secrets.io, kind: ExternalSecret}]\n  source:\n    kustomize:\n      patches:\n      - target: {kind: ExternalSecret, group: external-secrets.io}\n        patch: |-\n          - op: replace\n            path: /spec/secretStoreRef/name\n            value: aws\n"}, "app.yaml", "path: /spec/storeRef/name", "an object of Argo CD names the API group"},
		"Health":         {"A health check is for the object of its namespace.", false, map[string]string{"a.yaml": strings.Replace(store, "{name: aws}", "{name: aws, namespace: first}", 1), "b.yaml": strings.NewReplacer("{name: vault}", "{name: aws, namespace: second}", "{{ .Values.mount }}", "kv").Replace(vault), "k.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec:\n  healthChecks: [{apiVersion: external-secrets.io/v1, kind: SecretStore, name: aws, namespace: second}]\n"}, "k.yaml", "kind: VaultKV", ""},
		"HalfReplaced":   {"A replacement is converted as a whole.", false, map[string]string{"prod/kustomization.yaml": "resources: [../base]\nreplacements:\n- source: {kind: ConfigMap, name: a, fieldPath: data.a}\n  targets: [{select: {kind: ExternalSecret, group: external-secrets.io}, fieldPaths: [spec.secretStoreRef.name, spec.nosuch.field]}]\npatches:\n- target: {kind: ExternalSecret}\n  patch: |-\n    - op: replace\n      path: /spec/secretStoreRef/name\n      value: aws\n"}, "prod/kustomization.yaml", "fieldPaths: [spec.secretStoreRef.name, spec.nosuch.field]", "a replacement cannot be converted"},
		"StoreInTheTree": {"A store that is given does not replace that of the input.", false, map[string]string{"a.yaml": store, "b.yaml": secret}, "b.yaml", "kind: AWSSecretsManager", ""},
	}
	given, err := ParseStore("VaultKV:secret")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			if !tc.chart && !strings.HasPrefix(name, "Unedited") || name == "UneditedPatch" {
				for k, v := range base {
					files[k] = v
				}
			}
			for k, v := range tc.files {
				files[k] = v
			}
			if tc.files["a.yaml"] != "" || tc.chart {
				delete(files, "base/store.yaml")
				delete(files, "base/db.yaml")
				delete(files, "base/kustomization.yaml")
			}
			sources := sourcesOf(files)
			for i := range sources {
				if tc.chart {
					sources[i].Chart = "shop"
				}
			}
			r, err := Convert(sources, Options{Namespace: "default", Stores: map[string]GivenStore{"SecretStore/aws": given}})
			if err != nil {
				t.Fatal(err)
			}
			report := strings.Join(r.Report.Wide(), "\n")
			if !strings.Contains(report, tc.report) || (tc.report == "" && r.Report.Verdict() != Exact) {
				t.Errorf("%s\nthe report is\n%s\nwant in it %q", tc.reason, report, tc.report)
			}
			for _, f := range r.Files {
				if f.Name == tc.file && !strings.Contains(string(f.Content), tc.want) {
					t.Errorf("%s\n%s is\n%s\nwant in it %q\n%s", tc.reason, f.Name, f.Content, tc.want, report)
				}
			}
		})
	}
}
