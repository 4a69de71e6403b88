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
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestBillOfMaterials finds the bill of each image by its reference, as registries do. It compares it with
// CycloneDX's own schema, and with the go command's description of the binary in the image.
func TestBillOfMaterials(t *testing.T) {
	u := open(t)
	schema := cyclonedxSchema(t)
	secondDir := t.TempDir()
	if err := must(packed())(t).save(secondDir, module); err != nil {
		t.Fatal(err)
	}
	for _, arch := range archs {
		t.Run(arch, func(t *testing.T) {
			_, subject := u.platform(t, arch)
			var bills [][]byte
			for _, d := range u.top.Manifests {
				m := must(v1.ParseManifest(bytes.NewReader(must(u.layout.Bytes(d.Digest))(t))))(t)
				if m.Subject != nil && m.Subject.Digest == subject {
					bills = append(bills, must(u.layout.Bytes(m.Layers[0].Digest))(t))
				}
			}
			if len(bills) != 1 {
				t.Fatalf("%d bills of materials refer to the image; want 1", len(bills))
			}
			if !bytes.Equal(bills[0], must(os.ReadFile(filepath.Join(secondDir, module+"-"+arch+".cdx.json")))(t)) {
				t.Error("the file next to the archive differs from the one in it")
			}
			if err := schema.Validate(must(jsonschema.UnmarshalJSON(bytes.NewReader(bills[0])))(t)); err != nil {
				t.Errorf("%#v", err)
			}
			bom := &cyclonedx.BOM{}
			if err := cyclonedx.NewBOMDecoder(bytes.NewReader(bills[0]), cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
				t.Fatal(err)
			}

			binary := u.root(t, arch)[module].data
			got := map[string]string{} // maps package URLs without the version to versions
			for _, c := range *bom.Components {
				name, _, _ := strings.Cut(c.PackageURL, "@")
				if _, ok := got[name]; ok {
					t.Errorf("%s is listed twice", name)
				}
				got[name] = c.Version
				if want := "pkg:golang/" + c.Name + "@" + strings.ReplaceAll(c.Version, "+", "%2B"); c.PackageURL != want {
					t.Errorf("package URL %s; want %s", c.PackageURL, want)
				}
			}
			want := versionsIn(t, binary)
			want["pkg:golang/golang.org/x/crypto/x509roots/fallback"] = "v0.0.1"
			want["pkg:golang/github.com/direct-secrets/direct-secrets/"+module] = "v1.2.3"
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("components: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff([]cyclonedx.Hash{{Algorithm: "SHA-256", Value: sha256Hex(binary)}}, *(*bom.Components)[0].Hashes); diff != "" {
				t.Errorf("hash of the binary: -want, +got:\n%s", diff)
			}
			if got := bom.Metadata.Component; got.Name != module || got.Version != "1.2.3" || (*got.Properties)[0].Value != "linux/"+arch {
				t.Errorf("the bill is for %s %s, %v", got.Name, got.Version, *got.Properties)
			}
			connected(t, bom)
		})
	}
}

// versionsIn returns the versions by package URL that `go version -m` prints for a binary.
func versionsIn(t *testing.T, binary []byte) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(path, binary, 0o600); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i, line := range strings.Split(string(must(exec.Command("go", "version", "-m", path).Output())(t)), "\n") {
		fields := strings.Fields(line)
		switch {
		case i == 0:
			out["pkg:golang/stdlib"] = strings.TrimPrefix(fields[1], "go")
		case len(fields) >= 3 && fields[0] == "dep":
			out["pkg:golang/"+fields[1]] = fields[2]
		}
	}
	if len(out) < 50 {
		t.Fatalf("`go version -m` printed only %d modules", len(out))
	}
	return out
}

// connected checks that every component is a direct or indirect dependency of the image.
func connected(t *testing.T, bom *cyclonedx.BOM) {
	t.Helper()
	want := map[string]bool{bom.Metadata.Component.BOMRef: true}
	for _, c := range *bom.Components {
		want[c.BOMRef] = true
	}
	edges := map[string][]string{}
	for _, d := range *bom.Dependencies {
		edges[d.Ref] = *d.Dependencies
	}
	got := map[string]bool{}
	next := []string{bom.Metadata.Component.BOMRef}
	for len(next) > 0 {
		got[next[0]] = true
		next = append(next[1:], edges[next[0]]...)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("reached from the image: -want, +got:\n%s", diff)
	}
}

// cyclonedxSchema returns the schema that CycloneDX publishes, from the module of its library.
func cyclonedxSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	folder := strings.TrimSpace(string(must(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output())(t)))
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	const at = "http://cyclonedx.org/schema/"
	for name, file := range map[string]string{
		"bom-1.6.schema.json":  "bom-1.6.schema.json",
		"spdx.schema.json":     "spdx.schema.json",
		"jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		data := must(os.ReadFile(filepath.Join(folder, "schema", file)))(t)
		if err := compiler.AddResource(at+name, must(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)); err != nil {
			t.Fatal(err)
		}
	}
	return must(compiler.Compile(at + "bom-1.6.schema.json"))(t)
}
