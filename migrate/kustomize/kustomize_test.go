package kustomize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuild(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	cases := map[string]struct {
		reason, kustomization string
		want, err             string
	}{
		"Local":    {"A kustomization is built, with the contents that are given.", "resources: [../base]\nnamePrefix: x-\n", "name: x-b", ""},
		"URL":      {"Nothing is fetched.", "resources: [https://127.0.0.1:1/a.yaml]\n", "", "is not fetched"},
		"SSH":      {"Not by ssh either.", "resources: [\"git@127.0.0.1:a/b\"]\n", "", "is not fetched"},
		"Missing":  {"A file that is missing could be a repository.", "resources: [github.com/example/base]\n", "", "which is not there, and is not fetched"},
		"Merged":   {"Nor is what a merge key adds.", "<<: {resources: [github.com/example/base]}\n", "", "git"},
		"Case":     {"Nor with other letters.", "Resources: [github.com/example/base]\n", "", "which is not there"},
		"Alias":    {"Nor through an alias.", "crds: &r [github.com/example/base]\nresources: *r\n", "", "git"},
		"Literal":  {"A value with an address is no reason to refuse.", "configMapGenerator: [{name: b, literals: [\"u=https://example.com\"]}]\n", "u: https://example.com", ""},
		"File":     {"A file is not fetched.", "configMapGenerator: [{name: a, files: [\"a=http://127.0.0.1:1/x y\"]}]\n", "", "is not fetched"},
		"Nested":   {"Kustomizations that it uses fetch nothing either.", "resources: [../far]\n", "", "far/kustomization.yaml names https://127.0.0.1:1/a.yaml, which is not there"},
		"Patch":    {"Nor do patches.", "resources: [../base]\npatches: [{path: \"https://127.0.0.1:1/p.yaml\"}]\n", "", "is not fetched"},
		"Program":  {"No program runs.", "helmCharts: [{name: a, repo: oci.example}]\n", "", "must specify --enable-helm"},
		"Outside":  {"No file outside of the folder is read.", "resources: [../base/a.yaml]\n", "", "security"},
		"NoObject": {"A folder without kustomization is an error.", "", "", "kustomization"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			all := map[string]string{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": object, "far/kustomization.yaml": "resources: [https://127.0.0.1:1/a.yaml]\n", "top/kustomization.yaml": tc.kustomization}
			if tc.kustomization == "" {
				delete(all, "top/kustomization.yaml")
				all["top/x"] = ""
			}
			for name, content := range all {
				at := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			resolved, err := Real(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Build(filepath.Join(dir, "top"), map[string][]byte{filepath.Join(resolved, "base/a.yaml"): []byte(strings.Replace(object, "name: a", "name: b", 1))})
			if !strings.Contains(string(got), tc.want) || (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s\ngot %s, error %v; want %q, error %q", tc.reason, got, err, tc.want, tc.err)
			}
		})
	}
}
