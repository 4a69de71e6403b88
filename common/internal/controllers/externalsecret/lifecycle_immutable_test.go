package externalsecret_test

import (
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// makeImmutable sets target.immutable.
func makeImmutable(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = true }

// TestImmutable creates an immutable Secret. It is never rewritten, and the provider is not read again, not even on
// request.
func TestImmutable(t *testing.T) {
	e := newOwnEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.synced("db", makeImmutable)
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
	e.wantUnchanged(before)
	// Setting it again fixes the error.
	testenv.Update(e.Client, es, makeImmutable)
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.Immutable = false })
	want()

	e.Delete(e.Secret("db"))
	e.Eventually(func() string {
		if s := e.Secret("db"); s == nil || s.Immutable != nil && *s.Immutable || string(s.Data["value"]) != "two" {
			return "the Secret was not created again as mutable"
		}
		return ""
	})
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
}
