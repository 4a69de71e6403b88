package migrate

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const (
	neededStore = `apiVersion: external-secrets.io/v1
kind: SecretStore
metadata: {name: vault}
spec: {provider: {vault: {server: "https://vault", path: secret, auth: {tokenSecretRef: {name: vault, key: token}}}}}
`
	convertedStore = `apiVersion: vault.direct-secrets.io/v1alpha1
kind: VaultKV
metadata: {name: vault}
spec:
  server: "https://vault"
  path: secret
  auth:
    tokenSecretRef: {name: vault, key: token}
`
	// stayingSecret cannot be converted.
	stayingSecret = `apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: config}
spec:
  secretStoreRef: {name: vault}
  target: {manifest: {apiVersion: apps/v1, kind: Deployment}}
  data: [{secretKey: a, remoteRef: {key: a}}]
`
)

// TestNeededStore holds where the manifest of a store stays that an unsupported object needs. A second run changes nothing.
func TestNeededStore(t *testing.T) {
	t.Parallel()
	const patch = "apiVersion: external-secrets.io/v1\nkind: SecretStore\nmetadata: {name: vault}\nspec: {provider: {vault: {server: \"https://other\"}}}\n"
	cases := map[string]struct {
		reason string
		chart  string
		files  map[string]string
		found  string // An object that is only looked up.
		want   string // store.yaml afterwards.
		report string
	}{
		"AnotherFile":     {"The store and the object are in different files.", "", map[string]string{"store.yaml": neededStore, "team/config.yaml": stayingSecret}, "", convertedStore + "---\n" + neededStore, "its manifest is kept next to the converted one, for objects that stay with External Secrets Operator: ExternalSecret config\n"},
		"Unneeded":        {"A store that only converted objects need is not kept.", "", map[string]string{"store.yaml": neededStore, "db.yaml": strings.Replace(stayingSecret, "  target: {manifest: {apiVersion: apps/v1, kind: Deployment}}\n", "", 1)}, "", convertedStore, "2 exact, 0 changed"},
		"Unreadable":      {"A document that cannot be read names the store.", "", map[string]string{"store.yaml": neededStore, "config.yaml": stayingSecret + "  a: {{ include \"a\" . }}: b\n"}, "", convertedStore + "---\n" + neededStore, "the document config.yaml:1\n"},
		"UnreadableOther": {"A document that cannot be read names another store.", "", map[string]string{"store.yaml": neededStore, "config.yaml": strings.Replace(stayingSecret, "{name: vault}", "{name: vault2}", 1) + "  a: {{ include \"a\" . }}: b\n"}, "", convertedStore, "1 exact, 0 changed, 1 unsupported"},
		"OtherNamespace":  {"An object of another namespace does not need it.", "", map[string]string{"store.yaml": strings.Replace(neededStore, "{name: vault}", "{name: vault, namespace: a}", 1), "b.yaml": strings.Replace(stayingSecret, "{name: config}", "{name: config, namespace: b}", 1)}, "", strings.Replace(convertedStore, "{name: vault}", "{name: vault, namespace: a}", 1), "1 exact, 0 changed, 1 unsupported"},
		"NoNamespace":     {"The namespace of the object is not known before it is applied.", "", map[string]string{"store.yaml": strings.Replace(neededStore, "{name: vault}", "{name: vault, namespace: a}", 1), "b.yaml": stayingSecret}, "", strings.Replace(convertedStore+"---\n"+neededStore, "metadata: {name: vault}", "metadata: {name: vault, namespace: a}", 2), "its manifest is kept"},
		"Windows":         {"Line ends stay.", "", map[string]string{"store.yaml": strings.ReplaceAll(neededStore, "\n", "\r\n"), "config.yaml": stayingSecret}, "", strings.ReplaceAll(convertedStore+"---\n"+neededStore, "\n", "\r\n"), "its manifest is kept"},
		"NoLineEnd":       {"A file without a line end.", "", map[string]string{"store.yaml": strings.TrimSuffix(neededStore, "\n"), "config.yaml": stayingSecret}, "", convertedStore + "---\n" + neededStore, "its manifest is kept"},
		"JSON":            {"A document in JSON becomes a List.", "", map[string]string{"store.yaml": `{"apiVersion": "external-secrets.io/v1", "kind": "SecretStore", "metadata": {"name": "vault"}, "spec": {"provider": {"gcpsm": {"projectID": "a", "auth": {"secretRef": {"secretAccessKeySecretRef": {"name": "a", "key": "b", "namespace": "default"}}}}}}}`, "config.yaml": stayingSecret}, "", "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": [\n    {\n      \"apiVersion\": \"gcp.direct-secrets.io/v1alpha1\",\n      \"kind\": \"GCPSecretManager\",\n      \"metadata\": {\n        \"name\": \"vault\"\n      },\n      \"spec\": {\n        \"projectID\": \"a\",\n        \"auth\": {\n          \"secretRef\": {\n            \"secretAccessKeySecretRef\": {\n              \"name\": \"a\",\n              \"key\": \"b\"\n            }\n          }\n        }\n      }\n    },\n    {\n      \"apiVersion\": \"external-secrets.io/v1\",\n      \"kind\": \"SecretStore\",\n      \"metadata\": {\n        \"name\": \"vault\"\n      },\n      \"spec\": {\n        \"provider\": {\n          \"gcpsm\": {\n            \"projectID\": \"a\",\n            \"auth\": {\n              \"secretRef\": {\n                \"secretAccessKeySecretRef\": {\n                  \"name\": \"a\",\n                  \"key\": \"b\",\n                  \"namespace\": \"default\"\n                }\n              }\n            }\n          }\n        }\n      }\n    }\n  ]\n}\n", "its manifest is kept"},
		"LookedUp":        {"An unsupported object of the cluster needs it.", "", map[string]string{"store.yaml": neededStore}, stayingSecret, convertedStore + "---\n" + neededStore, "ExternalSecret config\n"},
		"LookedUpAndRead": {"The input has a newer version of the object of the cluster.", "", map[string]string{"store.yaml": neededStore, "db.yaml": strings.Replace(stayingSecret, "  target: {manifest: {apiVersion: apps/v1, kind: Deployment}}\n", "", 1)}, stayingSecret, convertedStore, "2 exact, 0 changed"},
		"Chart":           {"A condition of a template stays around both.", "shop", map[string]string{"store.yaml": "{{- if .Values.secrets }}\n" + neededStore + "{{- end }}\n", "config.yaml": strings.Replace(stayingSecret, "{name: config}", "{name: \"{{ .Release.Name }}\"}", 1)}, "", "{{- if .Values.secrets }}\n" + convertedStore + "---\n" + neededStore + "{{- end }}\n", "ExternalSecret {{ .Release.Name }}\n"},
		"ChartFile":       {"A condition begins in this document and ends in another.", "shop", map[string]string{"store.yaml": "{{- if .Values.secrets }}\n" + neededStore + "---\n" + stayingSecret + "{{- end }}\n"}, "", "{{- if .Values.secrets }}\n" + convertedStore + "---\n" + neededStore + "---\n" + stayingSecret + "{{- end }}\n", "its manifest is kept"},
		"ChartInside":     {"A condition inside of the manifest is in both.", "shop", map[string]string{"store.yaml": strings.Replace(neededStore, " {name: vault}", "\n  name: vault\n  {{- if .Values.labels }}\n  labels: {a: b}\n  {{- end }}", 1), "config.yaml": stayingSecret}, "", strings.ReplaceAll(convertedStore+"---\n"+neededStore, "metadata: {name: vault}", "metadata:\n  name: vault\n  {{- if .Values.labels }}\n  labels: {a: b}\n  {{- end }}"), "its manifest is kept"},
		"ChartHalf":       {"A condition that begins inside of the manifest and ends behind it cannot be copied.", "shop", map[string]string{"store.yaml": strings.Replace(neededStore, "spec:", "{{- if .Values.secrets }}\nspec:", 1) + "---\n" + stayingSecret + "{{- end }}\n"}, "", strings.Replace(convertedStore, "spec:", "{{- if .Values.secrets }}\nspec:", 1) + "---\n" + stayingSecret + "{{- end }}\n", "add the former manifest next to the converted one"},
		"Patch":           {"A patch of the store is for the converted one afterwards.", "", map[string]string{"kustomization.yaml": "resources: [store.yaml, config.yaml]\npatches: [{path: patch.yaml}]\n", "patch.yaml": patch, "store.yaml": neededStore, "config.yaml": stayingSecret}, "", convertedStore + "---\n" + neededStore, "add the former patches and replacements, too"},
		"PatchTarget":     {"A target of a patch, too.", "", map[string]string{"kustomization.yaml": "resources: [store.yaml, config.yaml]\npatches: [{target: {kind: SecretStore}, patch: \"[{op: replace, path: /spec/provider/vault/path, value: a}]\"}]\n", "store.yaml": neededStore, "config.yaml": stayingSecret}, "", convertedStore + "---\n" + neededStore, "add the former patches and replacements, too"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources := sourcesOf(tc.files)
			for i := range sources {
				sources[i].Chart = tc.chart
			}
			options := Options{Namespace: "default"}
			if tc.found != "" {
				options.Context = sourcesOf(map[string]string{"cluster": tc.found})
			}
			r, err := Convert(sources, options)
			if err != nil {
				t.Fatal(err)
			}
			if report := strings.Join(r.Report.Wide(), "\n"); !strings.Contains(report, tc.report) {
				t.Errorf("%s\nthe report is\n%s\nwant in it %q", tc.reason, report, tc.report)
			}
			for i, f := range r.Files {
				r.Files[i].Chart = tc.chart
				if diff := gocmp.Diff(tc.want, string(f.Content)); f.Name == "store.yaml" && diff != "" {
					t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
				}
			}
			again, err := Convert(r.Files, options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(r.Files, again.Files); diff != "" {
				t.Errorf("a second run: -once, +twice:\n%s", diff)
			}
		})
	}
}

// TestNeededStoreMoves holds that a store which stays is no change for the objects that a cut-over moves: it leaves ESO's store in
// the cluster.
func TestNeededStoreMoves(t *testing.T) {
	t.Parallel()
	r, err := Convert(sourcesOf(map[string]string{"cluster": neededStore + "---\n" + stayingSecret}), Options{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if one := r.Objects[0]; one.Kind != "SecretStore" || one.Changes != 0 || one.Verdict != Exact || len(one.JSON) == 0 {
		t.Errorf("the store became %+v", one)
	}
	if v := r.Report.Objects[0].Verdict; v != Changed {
		t.Errorf("the report has the verdict %s", v)
	}
}

// TestPatchForKept holds that patches which a user wrote for a kept manifest stay, and that a build has the objects of a
// conversion of the former build.
func TestPatchForKept(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"prod/kustomization.yaml": "resources: [store.yaml, config.yaml]\nnamespace: shop\npatches: [{path: patch.yaml}, {target: {kind: SecretStore}, patch: \"[{op: replace, path: /spec/provider/vault/path, value: a}]\"}]\n",
		"prod/patch.yaml":         "apiVersion: external-secrets.io/v1\nkind: SecretStore\nmetadata: {name: vault}\nspec: {provider: {vault: {server: \"https://other\"}}}\n",
		"prod/store.yaml":         convertedStore + "---\n" + neededStore, "prod/config.yaml": stayingSecret,
	}
	r, err := Convert(sourcesOf(files), Options{Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]string{}
	for _, f := range r.Files {
		now[f.Name] = string(f.Content)
	}
	if diff := gocmp.Diff(files, now); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for _, n := range r.Report.Others {
		if strings.Contains(n.Reason, "cannot be converted") {
			t.Errorf("%s:%d: %s", n.File, n.Line, n.Reason)
		}
	}
	before := map[string]string{
		"prod/kustomization.yaml": "resources: [store.yaml, config.yaml]\nnamespace: shop\n",
		"prod/store.yaml":         neededStore, "prod/config.yaml": stayingSecret,
	}
	if r, err = Convert(sourcesOf(before), Options{Namespace: "default"}); err != nil {
		t.Fatal(err)
	}
	after := map[string]string{}
	for _, f := range r.Files {
		after[f.Name] = string(f.Content)
	}
	dir := t.TempDir()
	differences, err := Compare(build(t, dir, "prod", before), build(t, dir, "prod", after), Options{Namespace: "default"})
	if err != nil || len(differences) > 0 {
		t.Errorf("error %v\n%s", err, strings.Join(differences, "\n"))
	}
}

// TestSecondRun holds what references become whose store is converted already.
func TestSecondRun(t *testing.T) {
	t.Parallel()
	const (
		secret = "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: db}\nspec:\n  secretStoreRef: {name: vault}\n  data: [{secretKey: a, remoteRef: {key: secret/data/a}}]\n"
		read   = "apiVersion: direct-secrets.io/v1alpha1\nkind: ExternalSecret\nmetadata: {name: db}\nspec:\n  storeRef: {kind: VaultKV, name: vault}\n  data: [{secretKey: a, remoteRef: {key: a}}]\n"
		push   = "apiVersion: external-secrets.io/v1alpha1\nkind: PushSecret\nmetadata: {name: push}\nspec:\n  secretStoreRefs: [{name: vault}]\n  selector: {secret: {name: db}}\n  data: [{match: {secretKey: a, remoteRef: {remoteKey: b}}}]\n"
	)
	given, err := ParseStore("VaultKV:secret")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		input  []string
		stores map[string]GivenStore
		want   string // A part of the result.
		report string
	}{
		"Converted":        {"The store is converted already.", []string{convertedStore, secret}, nil, "storeRef: {name: vault, kind: VaultKV}\n  data: [{secretKey: a, remoteRef: {key: a}}]", "1 exact"},
		"Cluster":          {"A cluster store of this name is another one.", []string{strings.Replace(convertedStore, "VaultKV", "ClusterVaultKV", 1), secret}, nil, "secretStoreRef", "is not in the input"},
		"ClusterConverted": {"A cluster store is converted already.", []string{strings.Replace(convertedStore, "VaultKV", "ClusterVaultKV", 1), strings.Replace(secret, "{name: vault}", "{name: vault, kind: ClusterSecretStore}", 1)}, nil, "kind: ClusterVaultKV}\n  data: [{secretKey: a, remoteRef: {key: a}}]", "1 exact"},
		"Namespace":        {"A store of another namespace is another one.", []string{strings.Replace(convertedStore, "{name: vault}", "{name: vault, namespace: other}", 1), secret}, nil, "secretStoreRef", "is not in the input"},
		"Several":          {"Stores of several Kinds have the name.", []string{convertedStore, "apiVersion: gcp.direct-secrets.io/v1alpha1\nkind: GCPSecretManager\nmetadata: {name: vault}\nspec: {projectID: a}\n", secret}, nil, "secretStoreRef", "as a VaultKV and a GCPSecretManager"},
		"Loop":             {"The ExternalSecret is converted already.", []string{convertedStore, read, push}, nil, "secretStoreRefs", "ExternalSecret db reads the Secret from this store"},
		"GivenLoop":        {"The store is named on the command line.", []string{read, push}, map[string]GivenStore{"SecretStore/vault": given}, "secretStoreRefs", "ExternalSecret db reads the Secret from this store"},
		"OtherLoop":        {"The ExternalSecret reads another store.", []string{convertedStore, strings.Replace(read, "name: vault", "name: other", 1), push}, nil, "storeRefs: [{name: vault, kind: VaultKV}]", "0 exact, 1 changed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := Convert([]Source{{Name: "a.yaml", Content: []byte(strings.Join(tc.input, "---\n"))}}, Options{Namespace: "default", Stores: tc.stores})
			if err != nil {
				t.Fatal(err)
			}
			if report := strings.Join(r.Report.Wide(), "\n"); !strings.Contains(report, tc.report) || !strings.Contains(string(r.Files[0].Content), tc.want) {
				t.Errorf("%s\n%s\nwant in it %q\n%s\nwant in it %q", tc.reason, report, tc.report, r.Files[0].Content, tc.want)
			}
		})
	}
}
