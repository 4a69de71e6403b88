//go:build long

package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	passwordmanifests "github.com/direct-secrets/direct-secrets/generator-password/manifests"
)

// An edit is a difference of another version.
type edit struct{ file, was, is string }

// laterVersion is a later version of generator-password. It has one more field and another default.
var laterVersion = []edit{
	{"generator-password/apis/v1alpha1/password_types.go", "type PasswordSettings struct {\n", "type PasswordSettings struct {\n\tLater string `json:\"later,omitempty\"`\n"},
	{"generator-password/password/settings.go", "defaultLength = 24\n", "defaultLength = 32\n"},
}

// buildVersion builds another version of a module, and returns the path of its binary.
func buildVersion(t *testing.T, module string, edits []edit) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for i, c := range edits {
		file, err := filepath.Abs(filepath.Join("..", "..", c.file))
		must(t, err)
		from, edited := replace[file]
		if !edited {
			from = file
		}
		text, err := os.ReadFile(from)
		must(t, err)
		if n := strings.Count(string(text), c.was); n != 1 {
			t.Fatalf("%s contains the text of an edit %d times: %s", c.file, n, c.was)
		}
		replace[file] = filepath.Join(dir, fmt.Sprint(i, ".go"))
		must(t, os.WriteFile(replace[file], []byte(strings.Replace(string(text), c.was, c.is, 1)), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	path := filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(path, overlay, 0o600))
	binary := filepath.Join(dir, module)
	must(t, build(module, binary, "-overlay", path))
	return binary
}

// withField returns CRDs with one more field, of strings, at each path of their schemas.
func withField(t *testing.T, manifests [][]byte, paths ...string) [][]byte {
	t.Helper()
	var all [][]byte
	for _, manifest := range manifests {
		crd := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(manifest, &crd.Object))
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		must(t, err)
		version, _ := versions[0].(map[string]any)
		for _, path := range paths {
			fields := append([]string{"schema", "openAPIV3Schema", "properties"}, strings.Split(path, ".")...)
			must(t, unstructured.SetNestedField(version, "string", append(fields, "type")...))
		}
		must(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
		manifest, err = yaml.Marshal(crd.Object)
		must(t, err)
		all = append(all, manifest)
	}
	return all
}

// TestPasswordUpgrade checks that an upgrade of the module, and its rollback, keep the passwords.
func TestPasswordUpgrade(t *testing.T) {
	t.Parallel()
	const ns = "upgrade"
	binary := buildVersion(t, stack.GeneratorPassword, laterVersion)
	h := passwords(t, ns, func(p *passwordv1.Password) {
		digits := int32(0)
		p.Spec.Digits, p.Spec.KeepPrevious = &digits, true
	})
	names := []string{"plain", "shaped", "salted"}
	for i, change := range []specChange{often, shaped, salted} {
		must(t, shared.Admin.Create(t.Context(), generated(ns, names[i], change)))
	}
	p := startModule(t, stack.GeneratorPassword, ns)
	later := func() { p = startBinary(t, binary, stack.GeneratorPassword, ns) }
	earlier := func() { p = startModule(t, stack.GeneratorPassword, ns) }
	versions := map[string]string{} // versions of the passwords
	wantUnchanged := func(after string) {
		t.Helper()
		waitUntilHandled(t, ns, names...)
		for _, name := range names {
			rec, _ := inspect.RecordOf(getSecret(t, ns, partName(name)).Annotations)
			is := rec.Entries[inspect.GeneratorID(pw)].Version
			if was, ok := versions[name]; ok && was != is {
				t.Fatalf("%s: after %s the part has a new version", name, after)
			}
			versions[name] = is
			if n := len(h.contents(name)); n != 1 {
				t.Fatalf("%s: after %s it has had %d different contents", name, after, n)
			}
		}
	}
	wantUnchanged("the start")
	must(t, p.Stop())
	crds := controlplane.Manifests(passwordmanifests.CRDs)
	must(t, shared.InstallCRDs(t.Context(), withField(t, crds, "spec.properties.later")...))
	t.Cleanup(func() { must(t, shared.InstallCRDs(context.Background(), crds...)) })
	later()
	must(t, p.Kill())
	later()
	wantUnchanged("the upgrade")

	// A new password proves the other version: it knows the field, and has another default.
	probe := &passwordv1.Password{}
	probe.Namespace, probe.Name = ns, "probe"
	must(t, shared.Admin.Create(t.Context(), probe))
	taken := generated(ns, "probe")
	taken.Spec.DataFrom[0].SourceRef.GeneratorRef = taken.Spec.DataFrom[0].SourceRef.GeneratorRef.DeepCopy()
	taken.Spec.DataFrom[0].SourceRef.GeneratorRef.Name = probe.Name
	must(t, shared.Admin.Create(t.Context(), taken))
	wantDifferent := func(was string) (is string) {
		t.Helper()
		eventually(t, func() string {
			if s := getSecret(t, ns, probe.Name); s != nil {
				is = string(s.Data["password"])
			}
			if len(is) != 32 || is == was {
				return "no new password of 32 characters"
			}
			return ""
		})
		return is
	}
	first := wantDifferent("")
	must(t, shared.Admin.Patch(t.Context(), probe, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"later":"yes"}}`))))
	wantDifferent(first)
	must(t, shared.Admin.Delete(t.Context(), taken))
	wantUnchanged("the use of a new field by another")

	must(t, p.Kill())
	earlier()
	wantUnchanged("the way back, and the CRD is the later one")
	must(t, shared.InstallCRDs(t.Context(), crds...))
	must(t, p.Stop())
	earlier()
	wantUnchanged("the way back")
	must(t, p.Stop())
	h.checkHistory(t, ns, 0, names...)
}
