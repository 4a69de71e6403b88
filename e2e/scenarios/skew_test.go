//go:build long

package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	commonmanifests "github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// laterCommon is a later version of common. It has one more field in the status, in the records of a part, and
// in the presence of a module, and fills all of them.
var laterCommon = []edit{
	{"common/apis/v1alpha1/externalsecret_types.go", "type ExternalSecretStatus struct {\n", "type ExternalSecretStatus struct {\n\tLater string `json:\"later,omitempty\"`\n"},
	{"common/internal/controllers/externalsecret/outcome.go", "\tst.ObservedGeneration = generation\n", "\tst.ObservedGeneration = generation\n\tst.Later = \"kept\"\n"},
	{"common/apis/v1alpha1/externalsecret_types.go", "type PartStatus struct {\n", "type PartStatus struct {\n\tLater string `json:\"later,omitempty\"`\n"},
	{"common/internal/handoff/status.go", "\t\tModule: c.Key(),", "\t\tLater: \"kept\", Module: c.Key(),"},
	{"common/internal/handoff/record.go", "type Record struct {\n", "type Record struct {\n\tLater string `json:\"later,omitempty\"`\n"},
	{"common/internal/handoff/record.go", "\traw, err := json.Marshal(r)\n", "\tr.Later = \"kept\"\n\traw, err := json.Marshal(r)\n"},
	{"common/internal/presence/presence.go", "type Member struct {\n", "type Member struct {\n\tLater string `json:\"later,omitempty\"`\n"},
	{"common/internal/presence/lease.go", "\traw, err := json.Marshal(m)\n", "\tm.Later = \"kept\"\n\traw, err := json.Marshal(m)\n"},
}

// later returns the contents of fields that only a later version has: in the status of an object, in its entry
// for the part of provider-vault, and in the part itself.
func (m *mix) later(name string) map[string]string {
	m.t.Helper()
	es := &unstructured.Unstructured{}
	es.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ExternalSecret"))
	must(m.t, shared.Admin.Get(m.t.Context(), types.NamespacedName{Namespace: m.ns, Name: name}, es))
	is := map[string]string{}
	if v, _, _ := unstructured.NestedString(es.Object, "status", "later"); v != "" {
		is["status"] = v
	}
	parts, _, err := unstructured.NestedSlice(es.Object, "status", "parts")
	must(m.t, err)
	for _, p := range parts {
		if entry, _ := p.(map[string]any); entry["module"] == vaultReader.Key() && entry["later"] != nil {
			is["entry"] = fmt.Sprint(entry["later"])
		}
	}
	if s := getSecret(m.t, m.ns, readsName(name)); s != nil {
		var record struct{ Later string }
		must(m.t, json.Unmarshal([]byte(s.Annotations[v1alpha1.PartAnnotation]), &record))
		is["part"] = record.Later
	}
	return is
}

// TestSkewFields makes a later version of provider-vault and the present versions of other modules work on the
// same objects, as during an upgrade. No field that only the later version has gets lost.
func TestSkewFields(t *testing.T) {
	// This test does not run in parallel: another CRD ends the watches that record the objects of other tests.
	binary := buildVersion(t, stack.ProviderVault, laterCommon)
	crd := [][]byte{}
	for _, manifest := range controlplane.Manifests(commonmanifests.CRDs) {
		if strings.Contains(string(manifest), "name: externalsecrets."+v1alpha1.Group) {
			crd = append(crd, manifest)
		}
	}
	must(t, shared.InstallCRDs(t.Context(), withField(t, crd, "status.properties.later", "status.properties.parts.items.properties.later")...))
	t.Cleanup(func() { must(t, shared.InstallCRDs(context.Background(), crd...)) })
	m := newMix(t, "skew-fields")
	withVaultFirst := func(es *v1alpha1.ExternalSecretSpec) { es.StoreRef, es.Data = withFirstStore(es) }
	m.put("leads", 1)   // The present version claims this object.
	m.put("follows", 1) // The later version claims this object.
	m.create("leads")
	m.create("follows", withVaultFirst)
	m.run(stack.ProviderAWS, stack.GeneratorPassword)
	m.processes[stack.ProviderVault] = startBinary(t, binary, stack.ProviderVault, m.ns, m.flags()...)
	m.waitUntilInSync("leads", "leads", 1, 1)
	m.waitUntilInSync("follows", "follows", 1, 1)
	wants := map[string]map[string]string{"leads": {"entry": "kept", "part": "kept"}, "follows": {"status": "kept"}}
	check := func(when string) {
		t.Helper()
		for name, want := range wants {
			if diff := cmp.Diff(want, m.later(name)); diff != "" {
				t.Errorf("%s, %s: -want, +is:\n%s", name, when, diff)
			}
		}
	}
	check("in step")
	var leases coordinationv1.LeaseList
	must(t, shared.Admin.List(t.Context(), &leases, client.InNamespace(m.ns)))
	reported := 0
	for _, l := range leases.Items {
		if strings.Contains(l.Annotations[v1alpha1.Group+"/member"], `"later":"kept"`) {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("%d Leases have the later field, want that of provider-vault", reported)
	}

	// The present version keeps fields that only the later version would write.
	es := m.get("leads")
	must(t, shared.Admin.Status().Patch(t.Context(), es, client.RawPatch(types.MergePatchType, []byte(`{"status":{"later":"other"}}`))))
	wants["leads"]["status"] = "other"
	for n := range 3 {
		for name := range wants {
			m.put(name, n+2)
			m.refresh(name)
			m.waitUntilInSync(name, name, n+2, n+2)
		}
		check("refreshed")
	}
	m.forget("leads")
	m.refresh("leads")
	m.wantFailed("leads", v1alpha1.ReasonSecretSyncedError, "NotFound: ")
	check("failing")
	m.put("leads", 5)
	m.refresh("leads")
	m.waitUntilInSync("leads", "leads", 5, 5)
	check("well again")

	// Each version takes over an object from the other.
	m.change("follows", func(es *v1alpha1.ExternalSecretSpec) {
		es.StoreRef, es.Data = m.object("follows").Spec.StoreRef, m.object("follows").Spec.Data
	})
	m.waitUntilInSync("follows", "follows", 4, 4)
	wants["follows"] = map[string]string{"status": "kept", "entry": "kept", "part": "kept"}
	eventually(t, func() string { return cmp.Diff(wants["follows"], m.later("follows")) })
	m.change("leads", withVaultFirst)
	m.waitUntilInSync("leads", "leads", 5, 5)
	wants["leads"] = map[string]string{"status": "kept"}
	eventually(t, func() string { return cmp.Diff(wants["leads"], m.later("leads")) })

	// After a rollback, the present version continues with the data of the later one.
	m.kill(stack.ProviderVault)
	m.run(stack.ProviderVault)
	for name := range wants {
		m.put(name, 6)
		m.refresh(name)
		m.waitUntilInSync(name, name, 6, 6)
	}
	m.history.end(t, m.ns)
	for name := range wants {
		m.whole(name)
	}
}

// withFirstStore returns the leading store and the entries of a spec with Vault as the leading store.
func withFirstStore(es *v1alpha1.ExternalSecretSpec) (*v1alpha1.StoreRef, []v1alpha1.DataEntry) {
	data := append([]v1alpha1.DataEntry{}, es.Data...)
	data[0].SourceRef = &v1alpha1.DataSourceRef{StoreRef: *es.StoreRef}
	return &vaultRef.StoreRef, data
}

// buildWith builds a module with another version of common in its go.mod.
func buildWith(t *testing.T, module, common string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", "..", module, file))
		must(t, err)
		required := "direct-secrets/common " + present(t) + "\n"
		if file == "go.mod" && strings.Count(string(text), required) != 1 {
			t.Fatalf("the go.mod of %s does not require %s", module, required)
		}
		text = []byte(strings.Replace(string(text), required, "direct-secrets/common "+common+"\n", 1))
		must(t, os.WriteFile(filepath.Join(dir, file), text, 0o600))
	}
	binary := filepath.Join(dir, module)
	must(t, build(module, binary, "-modfile", filepath.Join(dir, "go.mod")))
	return binary
}

// present returns the version of common that all modules require.
func present(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "go.mod"))
	must(t, err)
	found := regexp.MustCompile(`direct-secrets/common (v\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("e2e/go.mod does not require common")
	}
	return string(found[1])
}

// ahead returns the version of common that is some minor versions after another one.
func ahead(t *testing.T, version string, minors int) string {
	t.Helper()
	parts := strings.Split(version, ".")
	minor, err := strconv.Atoi(parts[1])
	must(t, err)
	return fmt.Sprintf("%s.%d.0", parts[0], minor+minors)
}

// TestSkewVersions runs modules whose versions of common are too far apart. Objects that need both report it,
// and stay unchanged. Other objects are not affected, nor are adjacent versions.
func TestSkewVersions(t *testing.T) {
	t.Parallel()
	next, far := buildWith(t, stack.ProviderVault, ahead(t, present(t), 1)), buildWith(t, stack.ProviderVault, ahead(t, present(t), 2))
	m := newMix(t, "skew-versions")
	vaultAs := func(binary string) {
		if m.processes[stack.ProviderVault] != nil {
			m.kill(stack.ProviderVault)
		}
		m.processes[stack.ProviderVault] = startBinary(t, binary, stack.ProviderVault, m.ns, m.flags()...)
	}
	vaultOnly := func(es *v1alpha1.ExternalSecretSpec) {
		storesOnly(es)
		es.StoreRef, es.Data = &vaultRef.StoreRef, es.Data[1:2]
	}
	both := func(es *v1alpha1.ExternalSecretSpec) { es.StoreRef, es.Data = withFirstStore(es) }
	mixed := []string{"leads", "follows"}
	for _, name := range append([]string{"aws", "vault"}, mixed...) {
		m.put(name, 0)
	}
	m.create("leads")
	m.create("follows", both)
	m.create("aws", awsOnly)
	m.create("vault", vaultOnly)
	vaultAs(far)
	m.run(stack.ProviderAWS, stack.GeneratorPassword)
	skewed := func() {
		t.Helper()
		m.wantFailed("leads", v1alpha1.ReasonVersionSkew, stack.ProviderAWS, present(t), stack.ProviderVault, ahead(t, present(t), 2))
		m.wantFailed("follows", v1alpha1.ReasonVersionSkew, present(t), stack.ProviderVault, ahead(t, present(t), 2)) // Two minor versions are too far apart.
	}
	skewed()
	for n := range 3 { // Meanwhile both modules work.
		m.put("aws", n)
		m.put("vault", n)
		m.refresh("aws")
		m.refresh("vault")
		wantValue(t, m.ns, "aws", awsKey, awsValue("aws", n))
		wantValue(t, m.ns, "vault", vaultKey, vaultValue("vault", n))
	}
	for _, name := range mixed {
		if n := len(m.history.of(name)); n > 0 {
			t.Errorf("%s: the Secret was written %d times", name, n)
		}
	}
	skewed()
	is := func(n int) {
		t.Helper()
		for _, name := range mixed {
			m.waitUntilInSync(name, name, n, n)
		}
	}
	vaultAs(next)
	is(0)
	vaultAs(far)
	for _, name := range mixed {
		m.put(name, 1)
		m.refresh(name)
	}
	skewed()
	vaultAs(next)
	is(1)
	m.kill(stack.ProviderVault)
	m.run(stack.ProviderVault)
	for _, name := range mixed {
		m.put(name, 2)
		m.refresh(name)
	}
	is(2)
	m.history.end(t, m.ns)
	for _, name := range mixed {
		m.whole(name)
		if n := len(m.history.contents(name, awsKey, vaultKey)); n != 3 {
			t.Errorf("%s: the Secret held %d different contents, want 3", name, n)
		}
	}
}
