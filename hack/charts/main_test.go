package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// tree returns a tree with one module, provider-acme, which has no chart yet. The charts have the version
// 0.3.1.
func tree(t *testing.T) string {
	t.Helper()
	root, here := t.TempDir(), filepath.Join("..", "..")
	for from, to := range map[string]string{
		"common/manifests": "common/manifests", "generator-password/manifests": "provider-acme/manifests",
	} {
		if err := os.CopyFS(filepath.Join(root, to), os.DirFS(filepath.Join(here, from))); err != nil {
			t.Fatal(err)
		}
	}
	permissions := strings.ReplaceAll(read(t, here, "generator-password/manifests/rbac.yaml"), "generator-password", "provider-acme")
	for name, content := range map[string]string{
		"provider-acme/go.mod":              "module example.com/provider-acme\n\nrequire github.com/direct-secrets/direct-secrets/common v0.3.1\n",
		"provider-acme/manifests/rbac.yaml": permissions,
		"charts/library/Chart.yaml":         "apiVersion: v2\nname: library\nversion: 0.3.1\n",
		"charts/crds/Chart.yaml":            "apiVersion: v2\nname: crds\nversion: 0.3.1\n",
		"charts/direct-secrets/Chart.yaml":  "apiVersion: v2\nname: direct-secrets\nversion: 0.3.1\nannotations:\n  artifacthub.io/images: |\ndependencies:\n  - name: library\n    version: 0.3.1\n",
	} {
		if err := write(filepath.Join(root, name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestNewModule adds a module like a developer: everything is generated once, and Chart.yaml is then kept as it is.
func TestNewModule(t *testing.T) {
	const umbrella, chart = "charts/direct-secrets/Chart.yaml", "charts/provider-acme/Chart.yaml"
	root := tree(t)
	const images = "  artifacthub.io/images: |\n"
	meta := strings.Replace(read(t, root, umbrella), images, images+"    - name: provider-acme\n      image: ghcr.io/direct-secrets/provider-acme:0.3.1\n", 1) + "  - name: provider-acme\n    version: 0.3.1\n    condition: provider-acme.enabled\n"
	for _, when := range []string{"once", "again"} {
		if err := run(root); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(meta, read(t, root, umbrella)); diff != "" {
			t.Errorf("%s the umbrella chart depends on the module: -want, +got:\n%s", when, diff)
		}
	}
	var made struct {
		Name, Version, AppVersion string
		Dependencies              []struct{ Name, Version string }
		Annotations               map[string]string
	}
	want := made
	want.Name, want.Version, want.AppVersion = "provider-acme", "0.3.1", "0.3.1"
	want.Annotations = map[string]string{
		"direct-secrets.io/common": "v0.3.1", "artifacthub.io/category": "security", "artifacthub.io/license": "Apache-2.0", "artifacthub.io/operator": "true",
		"artifacthub.io/images": "- name: provider-acme\n  image: ghcr.io/direct-secrets/provider-acme:0.3.1\n",
	}
	want.Dependencies = []struct{ Name, Version string }{{"library", "0.3.1"}}
	if err := yaml.Unmarshal([]byte(read(t, root, chart)), &made); err != nil {
		t.Fatal(err)
	}
	if crds := made.Annotations["artifacthub.io/crds"]; !strings.Contains(crds, "name: passwords.generator.direct-secrets.io\n") {
		t.Errorf("a new chart lists its CRDs, got:\n%s", crds)
	}
	delete(made.Annotations, "artifacthub.io/crds")
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("a new chart has the version of the others: -want, +got:\n%s", diff)
	}
	if got := read(t, root, "charts/direct-secrets/files/modules.yaml"); !strings.HasSuffix(got, "\nprovider-acme: generator.direct-secrets.io\n") {
		t.Errorf("modules.yaml does not tell the group of the module:\n%s", got)
	}
	for _, file := range []string{"charts/direct-secrets/values.yaml", "charts/direct-secrets/values.schema.json", "charts/direct-secrets/README.md"} {
		if !strings.Contains(read(t, root, file), "provider-acme") {
			t.Errorf("%s does not contain the module", file)
		}
	}

	edited := read(t, root, chart) + "deprecated: true\n"
	if err := os.WriteFile(filepath.Join(root, chart), []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(root); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(edited, read(t, root, chart)); diff != "" {
		t.Errorf("what somebody has edited stays: -want, +got:\n%s", diff)
	}
}
