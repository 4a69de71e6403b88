//go:build long

package scenarios

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/inspect"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// serves reports whether a part has the values for a refresh request.
func (m *mix) serves(name, request string) bool {
	m.t.Helper()
	s := getSecret(m.t, m.ns, name)
	if s == nil {
		return false
	}
	rec, _ := inspect.RecordOf(s.Annotations)
	if rec.Reads != nil {
		return rec.Reads.Request == request
	}
	return rec.Entries[inspect.GeneratorID(pw)].Request == request
}

// vaultReads returns the number of reads from Vault for an object.
func (m *mix) vaultReads(name string) int {
	return m.vault.Count(vaulttest.On(vaultMount + "/data/" + m.key(name)))
}

// TestMixedImmutable checks that an immutable Secret is never rewritten, whatever another module reads.
func TestMixedImmutable(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-immutable")
	m.put("es", 1)
	m.create("es", often, func(es *v1alpha1.ExternalSecretSpec) { es.Target.Immutable = true })
	m.put("sign", 1)
	m.create("sign", often)
	m.run(mixedModules...)
	m.waitUntilInSync("es", "es", 1, 1)
	m.waitUntilInSync("sign", "sign", 1, 1)
	before := getSecret(t, m.ns, "es")
	if before.Immutable == nil || !*before.Immutable {
		t.Error("the Secret is not immutable")
	}
	read := m.vaultReads("es")
	m.put("es", 2)
	m.refresh("es")
	for n := range 3 { // Each running module has had the time to handle it.
		m.put("sign", n+2)
		m.refresh("sign")
		m.waitUntilInSync("sign", "sign", n+2, n+2)
	}
	m.waitUntilInSync("es", "es", 1, 1)
	for _, module := range mixedModules {
		m.kill(module)
		m.run(module)
	}
	m.put("sign", 9)
	m.refresh("sign")
	m.waitUntilInSync("sign", "sign", 9, 9)
	if diff := cmp.Diff(before, getSecret(t, m.ns, "es")); diff != "" {
		t.Errorf("the Secret has changed: -before, +now:\n%s", diff)
	}
	if n := m.vaultReads("es") - read; n > 0 {
		t.Errorf("Vault was read %d times for a Secret that is never rewritten", n)
	}
}

// TestMixedSuspended suspends objects, one from the start. No module reads or writes anything for them.
func TestMixedSuspended(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-suspended")
	suspend := func(yes bool) specChange {
		return func(es *v1alpha1.ExternalSecretSpec) { es.Suspend = yes }
	}
	for _, name := range []string{"new", "old", "sign"} {
		m.put(name, 1)
	}
	m.create("new", suspend(true))
	m.create("old", often)
	m.create("sign")
	m.run(mixedModules...)
	m.waitUntilInSync("old", "old", 1, 1)
	m.waitUntilInSync("sign", "sign", 1, 1)

	m.change("old", suspend(true))
	wantReady(t, m.ns, "old", v1alpha1.ReasonSuspended)
	wantReady(t, m.ns, "new", v1alpha1.ReasonSuspended)
	for n := range 3 { // Each module has had the time once it has handled another object.
		m.put("sign", n+2)
		m.refresh("sign")
		m.waitUntilInSync("sign", "sign", n+2, n+2)
	}
	was := m.vaultReads("old")
	before := []*corev1.Secret{getSecret(t, m.ns, "old"), getSecret(t, m.ns, readsName("old")), getSecret(t, m.ns, partName("old"))}
	for _, name := range []string{"new", "old"} {
		m.put(name, 2)
		m.refresh(name)
	}
	for n := range 3 {
		m.put("sign", n+5)
		m.refresh("sign")
		m.waitUntilInSync("sign", "sign", n+5, n+5)
	}
	after := []*corev1.Secret{getSecret(t, m.ns, "old"), getSecret(t, m.ns, readsName("old")), getSecret(t, m.ns, partName("old"))}
	if diff := cmp.Diff(before, after); diff != "" || slices.Contains(before, nil) {
		t.Errorf("while an object was suspended its Secret or its parts have changed: -before, +now:\n%s", diff)
	}
	if n := m.vaultReads("old"); n != was {
		t.Errorf("while an object was suspended Vault was read %d times for it", n-was)
	}
	for _, name := range []string{"new", readsName("new"), partName("new")} {
		if getSecret(t, m.ns, name) != nil {
			t.Errorf("an object that is suspended has Secret %s", name)
		}
	}
	if n := m.vaultReads("new"); n != 0 {
		t.Errorf("Vault was read %d times for an object that is suspended", n)
	}
	for _, name := range []string{"new", "old"} {
		m.change(name, suspend(false))
		m.waitUntilInSync(name, name, 2, 2)
	}
	m.history.end(t, m.ns)
	m.whole("old")
	m.whole("new")
}

// TestMixedAgain deletes objects and creates them again under the same name, after the values of their remote
// secrets have changed. No value that was read for the first object gets into the Secret of the last.
func TestMixedAgain(t *testing.T) {
	t.Parallel()
	m := newMix(t, "mixed-again")
	never := func(es *v1alpha1.ExternalSecretSpec) { es.Target.CleanupPolicy = v1alpha1.CleanupNever }
	kinds := map[string][]specChange{"owned": nil, "never": {never}}
	m.run(mixedModules...)
	const remote, last = "remote", 2
	for n := range last + 1 {
		m.put(remote, n)
		for name, change := range kinds {
			if n > 0 {
				must(t, shared.Admin.Delete(t.Context(), m.get(name)))
			}
			m.create(name, append(change, func(es *v1alpha1.ExternalSecretSpec) { m.read(es, remote) })...)
		}
		if n == 1 { // They are deleted before a module has seen them.
			continue
		}
		for name := range kinds {
			m.waitUntilInSync(name, remote, n, n)
		}
	}
	uids := map[string]generation{}
	for name := range kinds {
		uids[name] = generation{m.get(name).UID, 1}
	}
	m.history.end(t, m.ns)
	for name := range kinds {
		written := false
		for i, v := range m.history.of(name) {
			if v.Deleted {
				if name == "never" {
					t.Errorf("%s, version %d: a Secret that must stay was missing", name, i)
				}
				continue
			}
			if h := half(v.Data); h != "" {
				t.Errorf("%s, version %d: %s", name, i, h)
			}
			is := v.By == uids[name]
			if is && (v.Data[vaultKey] != vaultValue(remote, last) || v.Data[awsKey] != awsValue(remote, last)) {
				t.Errorf("%s, version %d: written for the last object, it holds %v", name, i, v.Data)
			}
			if written && !is {
				t.Errorf("%s, version %d: back to an object that is deleted", name, i)
			}
			written = is
		}
		if !written {
			t.Errorf("%s: the last object has not written", name)
		}
	}
}
