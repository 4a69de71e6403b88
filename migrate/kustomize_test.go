package migrate

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/migrate/kustomize"
)

const (
	kustomStore = `apiVersion: external-secrets.io/v1beta1
kind: SecretStore
metadata: {name: vault}
spec:
  provider:
    vault: {server: "https://vault:8200", path: secret, auth: {tokenSecretRef: {name: vault, key: token}}}
`
	kustomCluster = `apiVersion: external-secrets.io/v1beta1
kind: ClusterSecretStore
metadata: {name: google}
spec:
  provider:
    gcpsm: {projectID: shop, auth: {secretRef: {secretAccessKeySecretRef: {name: google, key: key.json, namespace: shop}}}}
`
	kustomSecret = `apiVersion: external-secrets.io/v1beta1
kind: ExternalSecret
metadata:
  name: db
spec:
  refreshInterval: 1h
  secretStoreRef:
    name: vault
    kind: SecretStore
  target:
    name: db
    template: {type: Opaque}
  data:
  - secretKey: password
    remoteRef: {key: secret/shop/db, property: password}
  - secretKey: user
    remoteRef: {key: shop/db, property: user}
`
)

// TestKustomize converts trees of kustomizations in place. A build of the result has the objects that a conversion of a build of the
// original has, unless the report names the difference. A second run changes nothing.
func TestKustomize(t *testing.T) {
	t.Parallel()
	base := map[string]string{
		"base/kustomization.yaml": "resources:\n- store.yaml\n- cluster.yaml\n- db.yaml\n", "base/store.yaml": kustomStore, "base/cluster.yaml": kustomCluster, "base/db.yaml": kustomSecret,
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   map[string]string // Parts of files afterwards.
		notes  []string
	}{
		"Base": {"A base and an overlay with nothing of its own are converted.", map[string]string{"prod/kustomization.yaml": "resources: [../base]\nnamespace: shop\n"}, nil, nil},
		"Merge": {
			"A patch of fields gets the new names.",
			map[string]string{
				"prod/kustomization.yaml": "resources: [../base]\npatches:\n- path: db.yaml # ours\n",
				"prod/db.yaml":            "# Production.\napiVersion: external-secrets.io/v1beta1\nkind: ExternalSecret\nmetadata:\n  name: db\nspec:\n  refreshInterval: 10m # often\n  secretStoreRef:\n    name: google\n    kind: ClusterSecretStore\n",
			},
			map[string]string{"prod/db.yaml": "# Production.\napiVersion: direct-secrets.io/v1alpha1\nkind: ExternalSecret\nmetadata:\n  name: db\nspec:\n  refreshInterval: 10m # often\n  storeRef:\n    name: google\n    kind: ClusterGCPSecretManager\n"}, nil,
		},
		"Strategic": {
			"The old list of patches, too.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base]\npatchesStrategicMerge:\n- db.yaml\n- |\n  apiVersion: external-secrets.io/v1beta1\n  kind: SecretStore\n  metadata: {name: vault}\n  spec: {provider: {vault: {server: \"https://other\"}}}\n", "prod/db.yaml": "apiVersion: external-secrets.io/v1beta1\nkind: ExternalSecret\nmetadata: {name: db}\nspec: {target: {name: other}}\n"},
			map[string]string{"prod/kustomization.yaml": "  apiVersion: vault.direct-secrets.io/v1alpha1\n  kind: VaultKV\n  metadata: {name: vault}\n  spec:\n    server: https://other\n"}, nil,
		},
		"Inline": {
			"A target gets the new group, version and Kind.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {group: external-secrets.io, version: v1beta1, kind: ExternalSecret, name: db}\n  patch: |-\n    - op: replace # a comment\n      path: /spec/secretStoreRef/name\n      value: google\n    - op: replace\n      path: /spec/secretStoreRef/kind\n      value: ClusterSecretStore\n    - op: add\n      path: /spec/data/-\n      value: {secretKey: more, remoteRef: {key: more}}\n    - op: remove\n      path: /spec/data/0\n"},
			map[string]string{"prod/kustomization.yaml": "patches:\n- target: {group: direct-secrets.io, version: v1alpha1, kind: ExternalSecret, name: db}\n  patch: |-\n    - op: replace # a comment\n      path: /spec/storeRef/name\n"}, nil,
		},
		"JSON": {
			"The old list of operations, in a file.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base]\npatchesJson6902:\n- target: {group: external-secrets.io, version: v1beta1, kind: SecretStore, name: vault}\n  path: ops.json\n", "prod/ops.json": `[{"op": "replace", "path": "/spec/provider/vault/server", "value": "https://other:8200"}]`},
			map[string]string{"prod/ops.json": `[{"op": "replace", "path": "/spec/server", "value": "https://other:8200"}]`, "prod/kustomization.yaml": "kind: VaultKV"}, nil,
		},
		"Many": {
			"A patch of all objects of a Kind.",
			map[string]string{
				"base/kustomization.yaml": "resources:\n- store.yaml\n- cluster.yaml\n- db.yaml\n- mail.yaml\n", "base/mail.yaml": strings.ReplaceAll(kustomSecret, "name: db", "name: mail"),
				"prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: ExternalSecret}\n  patch: |-\n    - op: replace\n      path: /spec/refreshInterval\n      value: 5m\n",
			},
			map[string]string{"prod/kustomization.yaml": "patch: |-\n    - op: replace\n      path: /spec/refreshInterval\n      value: 5m"}, nil,
		},
		"Component": {
			"A component patches objects of whoever uses it.",
			map[string]string{
				"prod/kustomization.yaml": "resources: [../base]\ncomponents: [../fast]\n", "fast/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: ExternalSecret, version: v1beta1}\n  patch: |\n    kind: ExternalSecret\n    apiVersion: external-secrets.io/v1beta1\n    metadata: {name: any}\n    spec: {refreshInterval: 1m}\n",
			},
			map[string]string{"fast/kustomization.yaml": "- target: {kind: ExternalSecret, version: v1alpha1}\n"}, nil,
		},
		"Delete": {
			"A patch that deletes.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base]\npatches:\n- patch: |\n    $patch: delete\n    apiVersion: external-secrets.io/v1beta1\n    kind: ExternalSecret\n    metadata: {name: db}\n"},
			map[string]string{"prod/kustomization.yaml": "    $patch: delete\n    apiVersion: direct-secrets.io/v1alpha1\n"}, nil,
		},
		"Null": {
			"A patch that removes fields.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base]\npatches:\n- patch: |\n    apiVersion: external-secrets.io/v1beta1\n    kind: ExternalSecret\n    metadata: {name: db}\n    spec: {refreshInterval: null}\n"},
			map[string]string{"prod/kustomization.yaml": "    spec: {refreshInterval: null}\n"}, nil,
		},
		"Replacement": {
			"The paths of replacements get the new names.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base, cm.yaml]\nreplacements:\n- source: {kind: ConfigMap, name: env, fieldPath: data.store}\n  targets:\n  - select: {kind: ExternalSecret, group: external-secrets.io}\n    fieldPaths: [spec.secretStoreRef.name, \"spec.data.[secretKey=user].remoteRef.key\", spec.data.*.remoteRef.property]\n", "prod/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {store: vault}\n"},
			map[string]string{"prod/kustomization.yaml": "  - select: {kind: ExternalSecret, group: direct-secrets.io}\n    fieldPaths: [spec.storeRef.name, \"spec.data.[secretKey=user].remoteRef.key\", spec.data.*.remoteRef.property]\n"}, nil,
		},
		"ReplacementFile": {
			"Also in a file.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base, cm.yaml]\nreplacements: [{path: r.yaml}]\n", "prod/r.yaml": "source: {kind: ConfigMap, name: env, fieldPath: data.store}\ntargets:\n- select: {kind: ExternalSecret}\n  fieldPaths:\n  - spec.secretStoreRef.name\n", "prod/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {store: vault}\n"},
			map[string]string{"prod/r.yaml": "  - spec.storeRef.name\n"}, nil,
		},
		"Labels": {
			"Labels that kustomize adds are reported, if they reach the Secret.",
			map[string]string{"base/db.yaml": strings.ReplaceAll(kustomSecret, "\n    template: {type: Opaque}", ""), "prod/kustomization.yaml": "resources: [../base]\ncommonLabels: {team: shop}\n"}, nil,
			[]string{"prod/kustomization.yaml:2: commonLabels adds labels to ExternalSecrets, which External Secrets Operator copies to their Secrets"},
		},
		"Nowhere": {
			"A patch for nothing is reported.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: ExternalSecret, version: v1, name: db}\n  patch: |-\n    - op: replace\n      path: /spec/refreshInterval\n      value: 5m\n"}, nil,
			[]string{"prod/kustomization.yaml:4: a patch cannot be converted: the input has no object that it is for"},
		},
		"Move": {
			"An operation that is not certain is reported.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: ExternalSecret, name: db}\n  patch: '[{\"op\": \"move\", \"from\": \"/spec/data/0\", \"path\": \"/spec/data/1\"}]'\n"}, nil,
			[]string{"prod/kustomization.yaml:4: a patch cannot be converted: ExternalSecret db: operation 1: it is not certain what it becomes"},
		},
		"Configuration": {
			"A configuration that names the Kinds is reported.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base]\nconfigurations: [c.yaml]\n", "prod/c.yaml": "nameReference:\n- kind: ConfigMap\n  fieldSpecs:\n  - kind: ExternalSecret\n    path: spec/target/name\n"}, nil,
			[]string{"prod/c.yaml:4: a configuration of Kustomize names the Kind ExternalSecret"},
		},
		"Others": {
			"Patches of other objects stay.",
			map[string]string{"prod/kustomization.yaml": "resources: [../base, cm.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: '[{\"op\": \"add\", \"path\": \"/data/a\", \"value\": \"b\"}]'\n- path: cm2.yaml\n", "prod/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {store: vault}\n", "prod/cm2.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: env}\ndata: {c: d}\n"}, nil, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := maps.Clone(base)
			maps.Copy(all, tc.files)
			sources := sourcesOf(all)
			r, err := Convert(sources, Options{Namespace: "default"})
			if err != nil {
				t.Fatal(err)
			}
			now := map[string]string{}
			for _, s := range r.Files {
				now[s.Name] = string(s.Content)
			}
			for file, part := range tc.want {
				if !strings.Contains(now[file], part) {
					t.Errorf("%s: %s is\n%s\nwant in it\n%s", tc.reason, file, now[file], part)
				}
			}
			var notes []string
			for _, n := range r.Report.Others {
				notes = append(notes, Name{File: n.File, Line: n.Line}.String()+": "+n.Reason)
			}
			if diff := gocmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("%s: notes: -want, +got:\n%s", tc.reason, diff)
			}
			again, err := Convert(sourcesOf(now), Options{Namespace: "default"})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range again.Files {
				if diff := gocmp.Diff(now[s.Name], string(s.Content)); diff != "" {
					t.Errorf("a second run changes %s: -once, +twice:\n%s", s.Name, diff)
				}
			}
			if len(tc.notes) > 0 {
				return
			}
			dir := t.TempDir()
			differences, err := Compare(build(t, dir, "prod", all), build(t, dir, "prod", now), Options{Namespace: "default"})
			if err != nil || len(differences) > 0 {
				t.Errorf("%s: error %v\n%s\n%s", tc.reason, err, strings.Join(differences, "\n"), now["prod/kustomization.yaml"])
			}
		})
	}
}

func sourcesOf(files map[string]string) []Source {
	var all []Source
	for _, name := range slices.Sorted(maps.Keys(files)) {
		all = append(all, Source{Name: name, Content: []byte(files[name])})
	}
	return all
}

// build writes files, and builds a kustomization of them.
func build(t *testing.T, dir, of string, files map[string]string) []byte {
	t.Helper()
	for name, content := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := kustomize.Build(filepath.Join(dir, of), nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
