//go:build long

package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
)

// forged replaces Vault's value in a text, like an attacker in a part.
func forged(value string) string { return strings.ReplaceAll(value, "from-vault", "from-evil!") }

// forge returns a copy of a part with foreign values, and a record that matches them.
func forge(t *testing.T, kept *corev1.Secret, ns, name string) *corev1.Secret {
	t.Helper()
	s := alter(t, kept, ns, name)
	seal(t, s, inspect.StoredRecord(s).UID)
	return s
}

// seal makes the record match the data of a part, for the object with a uid.
func seal(t *testing.T, s *corev1.Secret, uid types.UID) {
	t.Helper()
	rec := inspect.StoredRecord(s)
	rec.UID, rec.Reads.Hash = uid, inspect.ContentHash(uid, s.Data)
	must(t, rec.Put(s))
}

// alter returns a copy of a part with foreign values.
func alter(t *testing.T, kept *corev1.Secret, ns, name string) *corev1.Secret {
	t.Helper()
	s := kept.DeepCopy()
	s.ObjectMeta = metav1.ObjectMeta{Namespace: ns, Name: name, Labels: kept.Labels, Annotations: kept.Annotations, OwnerReferences: kept.OwnerReferences}
	changed := false
	for k, data := range s.Data {
		var read struct {
			Value struct {
				Data    []byte `json:"data"`
				Version string `json:"version,omitempty"`
			} `json:"value"`
		}
		if json.Unmarshal(data, &read) != nil || !strings.Contains(string(read.Value.Data), "from-vault") {
			continue
		}
		read.Value.Data = []byte(forged(string(read.Value.Data)))
		raw, err := json.Marshal(read)
		must(t, err)
		s.Data[k] = raw
		changed = true
	}
	if !changed {
		t.Fatalf("Secret %s does not have the values that were read", kept.Name)
	}
	return s
}

// genuine fails the test if a version of a Secret contains forged values.
func (m *mix) genuine(name string) {
	m.t.Helper()
	for i, v := range m.history.of(name) {
		if !v.Deleted && strings.HasPrefix(v.Data[vaultKey], "from-evil!") {
			m.t.Errorf("Secret %s, version %d: has forged values", name, i)
		}
	}
}

// TestMixedForged creates Secrets that look exactly like a part: next to the part of an object, instead of it,
// and in another namespace. A part that the status does not record is not used.
func TestMixedForged(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-forged")
	other := m.ns + "-other"
	must(t, shared.CreateNamespace(t.Context(), other))
	both := func(module string) { // The modules can read the other namespace, too.
		m.processes[module] = startModule(t, module, m.ns+","+other, m.flags()...)
	}
	m.put("es", 1)
	m.create("es")
	for _, module := range mixedModules {
		both(module)
	}
	m.waitUntilInSync("es", "es", 1, 1)
	recorded := m.reads("es")
	if recorded == nil || recorded.Name != readsName("es") {
		t.Fatalf("the status records %+v", recorded)
	}
	kept := getSecret(t, m.ns, recorded.Name)
	if kept.Type != inspect.ContributionType || kept.UID != recorded.UID {
		t.Errorf("the part is of type %s and uid %s, the status records %+v", kept.Type, kept.UID, recorded)
	}

	since := time.Now()
	forgedPart := forge(t, kept, m.ns, "a-"+kept.Name)
	must(t, shared.Admin.Create(t.Context(), forgedPart))
	elsewhere := forge(t, kept, other, kept.Name)
	elsewhere.OwnerReferences = nil // The garbage collector would delete it.
	must(t, shared.Admin.Create(t.Context(), elsewhere))
	m.put("es", 2)
	m.refresh("es")
	m.waitUntilInSync("es", "es", 2, 2)

	// The forged part is created instead of the real one, before the module runs: the object is created again,
	// and so is its part.
	m.kill(stack.ProviderVault)
	must(t, shared.Admin.Delete(t.Context(), m.get("es")))
	waitUntilDeleted(t, &corev1.Secret{}, m.ns, kept.Name)
	waitUntilDeleted(t, &corev1.Secret{}, m.ns, "es")
	instead := forge(t, kept, m.ns, kept.Name)
	instead.OwnerReferences = nil
	must(t, shared.Admin.Create(t.Context(), instead))
	es := m.create("es")
	// The forged part names the new object, as far as that is possible.
	seal(t, instead, es.UID)
	must(t, shared.Admin.Update(t.Context(), instead))
	m.put("sign", 1)
	m.create("sign", awsOnly)
	for n := range 3 { // The other modules have had the time to handle it.
		m.putAWS("sign", n+2)
		m.refresh("sign")
		wantValue(t, m.ns, "sign", awsKey, awsValue("sign", n+2))
	}
	if getSecret(t, m.ns, "es") != nil {
		t.Error("a part that the status does not record has made a Secret")
	}
	both(stack.ProviderVault)
	m.waitUntilInSync("es", "es", 2, 2)
	if is := getSecret(t, m.ns, kept.Name); m.reads("es").UID != is.UID {
		t.Errorf("the part is not the one that the status records: %+v", m.reads("es"))
	}
	m.put("es", 3)
	m.refresh("es")
	m.waitUntilInSync("es", "es", 3, 3)
	m.history.end(t, m.ns)
	m.genuine("es")

	log, err := shared.ReadAuditLog(since)
	must(t, err)
	ours := 0
	for _, e := range log {
		if !strings.HasPrefix(e.UserAgent, "direct-secrets/") || e.ObjectRef.Name != kept.Name {
			continue
		}
		switch e.ObjectRef.Namespace {
		case m.ns:
			ours++
		case other:
			t.Errorf("%s: %s of a part in another namespace", e.User.Username, e.Verb)
		}
	}
	if ours == 0 {
		t.Error("the audit log has no request for the part, so it proves nothing")
	}
}

// asBefore returns how a part has changed, apart from the time of its last read.
func asBefore(was, is *corev1.Secret) string {
	type content struct {
		Type   corev1.SecretType
		Labels map[string]string
		Owners []metav1.OwnerReference
		Data   map[string]string
		Of     types.UID
		Reads  map[string]string
	}
	of := func(s *corev1.Secret) content {
		c := content{Type: s.Type, Labels: s.Labels, Owners: s.OwnerReferences, Data: newVersion(s, false).Data}
		delete(c.Data, "record")
		rec, _ := inspect.RecordOf(s.Annotations)
		if c.Of = rec.UID; rec.Reads != nil {
			c.Reads = rec.Reads.Entries
		}
		return c
	}
	return cmp.Diff(of(was), of(is))
}

// TestMixedEdited edits and deletes a part. The part is repaired, and no Secret gets the edited values.
func TestMixedEdited(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-edited")
	m.put("es", 1)
	m.create("es")
	m.run(mixedModules...)
	m.waitUntilInSync("es", "es", 1, 1)
	patch := func(body string) func(*corev1.Secret) error {
		return func(s *corev1.Secret) error {
			return shared.Admin.Patch(t.Context(), s, client.RawPatch(types.MergePatchType, []byte(body)))
		}
	}
	remove := func(s *corev1.Secret) error { return shared.Admin.Delete(t.Context(), s) }
	for i, edit := range []struct {
		reason string
		do     func(*corev1.Secret) error
	}{
		{"its values", func(s *corev1.Secret) error { return shared.Admin.Update(t.Context(), forge(t, s, m.ns, s.Name)) }},
		{"its labels", patch(`{"metadata":{"labels":null}}`)},
		{"its record", patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:"{}"}}}`, v1alpha1.PartAnnotation))},
		{"no record", patch(`{"metadata":{"annotations":null}}`)},
		{"the record in its data", patch(`{"data":{"record":null}}`)},
		{"no data", patch(`{"data":null}`)},
		{"no owner", patch(`{"metadata":{"ownerReferences":null}}`)},
		{"the part is deleted", remove},
		{"the part is replaced by another Secret", func(s *corev1.Secret) error {
			again := forge(t, s, m.ns, s.Name)
			if err := remove(s); err != nil {
				return err
			}
			return client.IgnoreAlreadyExists(shared.Admin.Create(t.Context(), again)) // The module can be faster.
		}},
	} {
		kept := getSecret(t, m.ns, readsName("es"))
		must(t, edit.do(kept.DeepCopy()))
		eventually(t, func() string {
			is := getSecret(t, m.ns, kept.Name)
			if is == nil {
				return edit.reason + ": there is no part"
			}
			if diff := asBefore(kept, is); diff != "" {
				return edit.reason + ": -was, +is:\n" + diff
			}
			if s := m.reads("es"); s == nil || s.UID != is.UID {
				return fmt.Sprintf("%s: the status records %+v of %s", edit.reason, s, is.UID)
			}
			return ""
		})
		m.put("es", i+2)
		m.refresh("es")
		m.waitUntilInSync("es", "es", i+2, i+2)
	}
	m.history.end(t, m.ns)
	m.whole("es")
	m.genuine("es")
}

// TestMixedEditedUnseen edits a part while the module that wrote it is down. No Secret gets the edited values,
// and the part is repaired when the module is back, even if Vault has no other value by then.
func TestMixedEditedUnseen(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-edited-unseen")
	names := []string{"often", "rarely", "replaced"}
	for _, name := range append([]string{"sign"}, names...) {
		m.put(name, 1)
	}
	m.create("often", often)
	m.create("rarely")
	m.create("replaced", often)
	m.create("sign", awsOnly)
	m.run(mixedModules...)
	m.waitUntilInSync("often", "often", 1, 1)
	m.waitUntilInSync("rarely", "rarely", 1, 1)
	m.waitUntilInSync("replaced", "replaced", 1, 1)
	m.kill(stack.ProviderVault)
	for _, name := range names {
		kept := getSecret(t, m.ns, readsName(name))
		if name == "replaced" { // Everything matches, but the status records another part.
			must(t, shared.Admin.Delete(t.Context(), kept.DeepCopy()))
			must(t, shared.Admin.Create(t.Context(), forge(t, kept, m.ns, kept.Name)))
		} else {
			must(t, shared.Admin.Update(t.Context(), alter(t, kept, m.ns, kept.Name)))
		}
		m.putAWS(name, 2)
	}
	for n := range 10 { // Meanwhile the other modules work.
		m.putAWS("sign", n+2)
		m.refresh("sign")
		wantValue(t, m.ns, "sign", awsKey, awsValue("sign", n+2))
	}
	m.kill(stack.ProviderAWS)
	m.run(stack.ProviderAWS, stack.ProviderVault)
	m.waitUntilInSync("often", "often", 2, 1)
	m.waitUntilInSync("replaced", "replaced", 2, 1)
	m.refresh("rarely")
	m.waitUntilInSync("rarely", "rarely", 2, 1)
	m.put("rarely", 3)
	m.refresh("rarely")
	m.waitUntilInSync("rarely", "rarely", 3, 3)
	m.history.end(t, m.ns)
	for _, name := range names {
		m.whole(name)
		m.genuine(name)
	}
}

// TestMixedDropped removes Vault's contribution from the spec, or deletes the object. The part is deleted,
// whichever modules run.
func TestMixedDropped(t *testing.T) {
	t.Parallel()
	remove := func(m *mix, name string) { must(m.t, shared.Admin.Delete(m.t.Context(), m.get(name))) }
	drop := func(m *mix, name string) { m.change(name, awsOnly) }
	m := newMix(t, "mixed-dropped")
	cases := map[string]func(*mix, string){"spec": drop, "spec-down": drop, "object": remove, "object-down": remove}
	for name := range cases {
		m.put(name, 1)
		m.create(name)
	}
	m.run(mixedModules...)
	for name := range cases {
		m.waitUntilInSync(name, name, 1, 1)
		if getSecret(t, m.ns, readsName(name)) == nil || getSecret(t, m.ns, partName(name)) == nil {
			t.Fatalf("%s: there are no parts", name)
		}
	}
	alone := func(name string) {
		t.Helper()
		eventually(t, func() string {
			data := newVersion(getSecret(t, m.ns, name), false).Data
			want := map[string]string{awsKey: awsValue(name, 1), passwordKey: data[passwordKey]}
			return cmp.Diff(want, data) + ready(m.get(name))
		})
	}
	unrecorded := func(name string) {
		t.Helper()
		eventually(t, func() string {
			if s := m.reads(name); s != nil {
				return fmt.Sprintf("%s: the status still records %+v", name, s)
			}
			return ""
		})
	}
	for _, name := range []string{"spec", "object"} {
		cases[name](m, name)
		waitUntilDeleted(t, &corev1.Secret{}, m.ns, readsName(name))
	}
	alone("spec")
	unrecorded("spec")

	m.kill(stack.ProviderVault)
	for _, name := range []string{"spec-down", "object-down"} {
		cases[name](m, name)
	}
	alone("spec-down")
	for _, name := range []string{"object", "object-down"} { // The garbage collector deletes these.
		for _, of := range []string{name, partName(name), readsName(name)} {
			waitUntilDeleted(t, &corev1.Secret{}, m.ns, of)
		}
	}
	waitUntilDeleted(t, &corev1.Secret{}, m.ns, readsName("spec-down")) // The remaining module deletes the part when it is sure that no other running module would.
	m.run(stack.ProviderVault)
	unrecorded("spec-down")

	for _, name := range []string{"spec", "spec-down"} {
		before := m.object(name).Spec
		m.change(name, func(es *v1alpha1.ExternalSecretSpec) {
			es.Data, es.Target.Template = before.Data, before.Target.Template
		})
		m.waitUntilInSync(name, name, 1, 1)
	}
}

// awsOnly removes the entries that are read from Vault, and the template.
func awsOnly(es *v1alpha1.ExternalSecretSpec) { es.Data, es.Target.Template = es.Data[:1], nil }
