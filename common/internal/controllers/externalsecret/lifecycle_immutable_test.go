package externalsecret_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// makeImmutable sets target.immutable.
func makeImmutable(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = true }

// TestImmutable creates an immutable Secret. It is never rewritten, and the provider is not read again, not even on
// request. The interval is short so that Orphan, too, creates a deleted Secret again soon.
func TestImmutable(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]v1alpha1.CreationPolicy{"Owner": v1alpha1.CreateOwner, "Orphan": v1alpha1.CreateOrphan} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("one"))
			e.synced("db", makeImmutable, creates(p), every("1s"))
			before := e.Secret("db")
			if before.Immutable == nil || !*before.Immutable || string(before.Data["value"]) != "one" {
				t.Fatalf("immutable is %v", before.Immutable)
			}
			e.WantStore("store", v1alpha1.ReasonStoreValid)
			e.Backend.Put("db", []byte("two"))
			reads := e.Backend.ReadsOf("db")
			e.refresh("db")
			testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} })
			testenv.Update(e.Client, e.Get("db"), testenv.Fills("value", "db", "more", "db"))
			c := e.WantReady("db", v1alpha1.ReasonSecretSynced)
			if !strings.Contains(c.Message, "immutable") {
				t.Errorf("message is %q, want it to mention that the Secret is immutable", c.Message)
			}
			e.Stop()
			e.Start()
			e.refresh("db")
			e.WaitForEvents()
			if got := e.Backend.ReadsOf("db") - reads; got != 0 {
				t.Errorf("%d reads for an immutable Secret, want none", got)
			}
			e.wantUnchanged(before)

			e.Delete(before)
			e.wantData("db", holds("value", "two", "more", "two"))
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
			if now := e.Secret("db"); now.Immutable == nil || !*now.Immutable {
				t.Error("the Secret that was created again is not immutable")
			}
		})
	}
}

// TestImmutableMoves changes cleanupPolicy of an object with an immutable Secret.
func TestImmutableMoves(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	es := e.synced("db", makeImmutable)
	before := e.Secret("db")
	e.WantStore("store", v1alpha1.ReasonStoreValid)
	e.Backend.Reset()
	e.move(es, never, false)
	e.move(es, onDelete, true)
	if diff := cmp.Diff(unowned(before), unowned(e.Secret("db"))); diff != "" {
		t.Errorf("more than the owner changed: -before, +now:\n%s", diff)
	}
	if calls := e.Backend.Calls(); len(calls) != 0 {
		t.Errorf("the provider was called: %+v", calls)
	}
	// Users can change labels of an immutable Secret. The operator ignores that.
	before = testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Labels["foreign"] = "keep" })
	e.WaitForEvents()
	e.wantUnchanged(before)
}

// TestImmutableTakenBack sets immutable back to false, which the API server does not allow.
func TestImmutableTakenBack(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	es := e.synced("db", makeImmutable)
	before := e.Secret("db")
	e.Backend.Put("db", []byte("two"))
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = false })
	want := func() {
		t.Helper()
		c := e.WantReady("db", v1alpha1.ReasonSecretSyncedError)
		if !strings.HasPrefix(c.Message, "Invalid") || !strings.Contains(c.Message, "delete the Secret") {
			t.Errorf("message is %q, want the class Invalid and the fix", c.Message)
		}
	}
	want()
	e.Stop()
	e.Start()
	e.WaitForEvents()
	want()
	e.wantUnchanged(before)
	// Setting it again fixes the error.
	testenv.Update(e.Client, es, makeImmutable)
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = false })
	want()

	e.Delete(e.Secret("db"))
	e.promptly("created again after the deletion, not immutable", func() string {
		if s := e.Secret("db"); s == nil || s.Immutable != nil && *s.Immutable || string(s.Data["value"]) != "two" {
			return "the Secret was not created again as mutable"
		}
		return ""
	})
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
}

// TestImmutableByOthers has a target that a user has made immutable.
func TestImmutableByOthers(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	yes := true
	e.Create(&corev1.Secret{ObjectMeta: e.Meta("db"), Immutable: &yes, Data: map[string][]byte{"foreign": []byte("keep")}})
	before := e.Secret("db")
	e.Create(e.ExternalSecret("db"))
	c := e.WantReady("db", v1alpha1.ReasonSecretSyncedError)
	if !strings.HasPrefix(c.Message, "Invalid") || !strings.Contains(c.Message, "immutable") {
		t.Errorf("message is %q", c.Message)
	}
	e.wantUnchanged(before)
	e.Delete(before)
	e.wantData("db", holds("value", "one"))
}
