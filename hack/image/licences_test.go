//go:build long

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
