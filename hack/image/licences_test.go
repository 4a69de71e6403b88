package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

// TestLicences compares the licences in the image with the components of its bill of materials.
func TestLicences(t *testing.T) {
	u := open(t)
	for _, arch := range archs {
		t.Run(arch, func(t *testing.T) {
			files := map[string][]byte{}
			for name, e := range u.root(t, arch) {
				if below, ok := strings.CutPrefix(name, "licenses/"); ok && len(e.data) > 0 {
					files[below] = e.data
				}
			}
			goroot := strings.TrimSpace(string(must(exec.Command("go", "env", "GOROOT").Output())(t)))
			sources := map[string]string{"LICENSE": filepath.Join("..", "..", "LICENSE"), "stdlib/LICENSE": filepath.Join(goroot, "LICENSE")}
			for name := range files { // The location of Go must not show, or the image would differ on each machine.
				if below, ok := strings.CutPrefix(name, "stdlib/"); ok {
					sources[name] = filepath.Join(goroot, below)
				}
			}
			for name, source := range sources {
				if want, err := os.ReadFile(source); err != nil || !bytes.Equal(files[name], want) {
					t.Errorf("%s is not the file %s: %v", name, source, err)
				}
			}
			// The licences include those in folders below the root of a module.
			for name, text := range map[string]string{
				"golang.org/x/crypto/x509roots/fallback/LICENSE":                               "The Go Authors",
				"sigs.k8s.io/randfill/NOTICE":                                                  "randfill project",
				"github.com/prometheus/client_golang/internal/github.com/golang/gddo/LICENSE":  "The Go Authors",
				"k8s.io/kube-openapi/pkg/internal/third_party/go-json-experiment/json/LICENSE": "The Go Authors",
			} {
				if !bytes.Contains(files[name], []byte(text)) {
					t.Errorf("%s does not name %s, but says:\n%s", name, text, files[name])
				}
			}

			bom := &cyclonedx.BOM{}
			if err := cyclonedx.NewBOMDecoder(bytes.NewReader(must(packed())(t).sboms[arch]), cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
				t.Fatal(err)
			}
			eachHasALicence(t, *bom.Components, files)
		})
	}
}

// eachHasALicence checks that the folder of each component has files, and that no other folder exists.
func eachHasALicence(t *testing.T, components []cyclonedx.Component, files map[string][]byte) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for _, c := range components {
		if !strings.HasPrefix(c.Name, "github.com/direct-secrets/direct-secrets/") { // These have the licence of the project.
			want[c.Name] = true
		}
	}
	for name, data := range files {
		if name == "LICENSE" {
			continue
		}
		of := filepath.Dir(name)
		for of != "." && !want[of] {
			of = filepath.Dir(of)
		}
		got[of] = true
		if strings.HasPrefix(filepath.Base(name), "LICENSE") && !bytes.Contains(bytes.ToLower(data), []byte("copyright")) {
			t.Errorf("%s is no licence:\n%s", name, data)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("components with a licence: -want, +got:\n%s", diff)
	}
}

// TestLicencesOfAPackage uses modules of other forms than those in the images.
func TestLicencesOfAPackage(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   []string
		err    string
	}{
		"Names": {
			reason: "files with terms can have several names, and code and folders are ignored",
			files: map[string]string{"a/LICENSE-MIT": "x", "a/Copying.txt": "x", "a/unlicense": "x", "a/NOTICE": "x",
				"a/license.go": "package a", "a/licenses/x": "x", "a/LICENSES.md": "x", "a/licensing.md": "x"},
			want: []string{"licenses/example.com/a/Copying.txt", "licenses/example.com/a/LICENSE-MIT", "licenses/example.com/a/LICENSES.md",
				"licenses/example.com/a/NOTICE", "licenses/example.com/a/unlicense"},
		},
		"Unused": {
			reason: "only linked code needs its licence",
			files: map[string]string{"a/LICENSE": "x", "a/a.go": "package a\n\nimport _ \"example.com/a/b/c\"\n", "a/b/c/c.go": "package c\n",
				"a/b/LICENSE": "x", "a/d/LICENSE": "x"},
			want: []string{"licenses/example.com/a/LICENSE", "licenses/example.com/a/b/LICENSE"},
		},
		"None": {
			reason: "linked code without a licence is an error",
			files:  map[string]string{"a/README.md": "x"},
			err:    "example.com/a has no file with its licence",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := t.TempDir()
			for name, content := range map[string]string{
				"a/go.mod": "module example.com/a\n", "a/a.go": "package a\n",
				"main/go.mod":  "module " + ownModules + "main\n\nrequire example.com/a v0.0.0\n\nreplace example.com/a => ../a\n",
				"main/main.go": "package main\n\nimport _ \"example.com/a\"\n\nfunc main() {}\n",
			} {
				if _, ok := tc.files[name]; !ok {
					writeTo(t, filepath.Join(tree, name), content)
				}
			}
			for name, content := range tc.files {
				writeTo(t, filepath.Join(tree, name), content)
			}
			found, err := licences(filepath.Join(tree, "main"), settings("amd64", "off"), "-deps", ".")
			var got []string
			for _, f := range found {
				if !strings.HasPrefix(f.name, "licenses/stdlib/") {
					got = append(got, f.name)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if descriptor := errorText(err); descriptor != tc.err {
				t.Errorf("%s: got error %q, want %q", tc.reason, descriptor, tc.err)
			}
		})
	}
}

func writeTo(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
