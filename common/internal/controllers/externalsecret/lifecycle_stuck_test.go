package externalsecret_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// TestNoLongerPeriodic advances the clock past the planned refresh of an object that is no longer periodic. The
// object needs no refresh, so it must not be reconciled in a loop.
func TestNoLongerPeriodic(t *testing.T) {
	e := newIdleEnv(t)
	e.Backend.Put("db", []byte("x"))
	var readCount atomic.Int64
	clock := newStepping()
	e.Serve(e.Server.Kinds(), operator.WithClock(func() time.Time {
		readCount.Add(1)
		return clock.time()
	}))
	e.synced("db", every("1h"))
	testenv.Update(e.Client, e.Get("db"), every("0"))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	if next := e.Get("db").Status.NextRefreshTime; next != nil {
		t.Errorf("status.nextRefreshTime is %s, want none: it is not refreshed again", next)
	}
	clock.step(2 * time.Hour)
	e.triggerReconcile("db")
	e.WaitForEvents()
	before := readCount.Load()
	e.WaitForEvents()
	if n := readCount.Load() - before; n > 50 {
		t.Errorf("the operator read the clock %d times while only one other object was created and deleted", n)
	}
}

// unlabel removes the label by which the operator watches a Secret.
func unlabel(s *corev1.Secret) { delete(s.Labels, target.ManagedLabel(fakev1.Group)) }

// TestUnlabelled removes the label by which the operator watches a Secret. The operator still manages the Secret.
func TestUnlabelled(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		spec   spec
		// then runs once the label is removed.
		then func(e *env)
		want map[string]string
	}{
		"Immutable": {"an immutable Secret without its label is deleted and created again with new values", makeImmutable, func(e *env) {
			e.Backend.Put("db", []byte("two"))
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			e.Eventually(func() string { return cmp.Diff("1", e.Get("db").Status.ObservedRefreshRequest) })
			e.Delete(e.Secret("db"))
		}, holds("value", "two")},
		"Gone": {"deletionPolicy Delete deletes the Secret, although the cache does not have it", deletes(v1alpha1.DeletionDelete), func(e *env) {
			e.Backend.Delete("db")
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			e.WantReady("db", v1alpha1.ReasonSecretDeleted)
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newOwnEnv(t)
			e.Backend.Put("db", []byte("one"))
			e.synced("db", tc.spec)
			e.Stop() // A running operator would restore the label.
			testenv.Update(e.Client, e.Secret("db"), unlabel)
			e.Start()
			e.WaitForEvents()
			tc.then(e)
			e.Eventually(func() string { return cmp.Diff(tc.want, e.dataOf("db")) })
		})
	}
}

// TestPartlyBlocked has an object that writes one key of a Secret while another object holds its second key. A user
// removes the key and the mark that it wrote; the key is restored at once.
func TestPartlyBlocked(t *testing.T) {
	e := newEnv(t)
	for _, name := range []string{"a", "b", "c"} {
		e.Backend.Put(name, []byte(name))
	}
	e.plain("shared", "foreign", "keep")
	e.synced("first", mergesInto("shared"), testenv.Fills("k1", "a"))
	e.Create(e.ExternalSecret("second", mergesInto("shared"), testenv.Fills("k1", "b", "k2", "c")))
	e.WantReady("second", v1alpha1.ReasonConflict)
	want := holds("foreign", "keep", "k1", "a", "k2", "c")
	e.wantData("shared", want)
	testenv.Update(e.Client, e.Secret("shared"), func(s *corev1.Secret) {
		delete(s.Data, "k2")
		delete(s.Annotations, target.MarkKey("second"))
	})
	e.Eventually(func() string { return cmp.Diff(want, e.dataOf("shared")) })
	e.WantReady("second", v1alpha1.ReasonConflict)
}

// TestRevertBackoffOfOwner removes the ownerReference repeatedly.
func TestRevertBackoffOfOwner(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("right"))
	es := e.synced("db")
	for n := range 20 {
		e.Eventually(func() string {
			if s := e.Secret("db"); s == nil || !operatortest.OwnedBy(s, es) {
				if n > 4 && e.ready("db") == v1alpha1.ReasonConflict {
					return ""
				}
				return "the ownerReference was not restored"
			}
			return ""
		})
		if e.ready("db") == v1alpha1.ReasonConflict {
			return
		}
		testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.OwnerReferences = nil })
	}
	t.Error("the ownerReference was restored twenty times in a row, want back-off")
}

// TestTerminatingTarget deletes a Secret that a finalizer keeps. The condition reports that until the Secret is
// deleted.
func TestTerminatingTarget(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	e.synced("db")
	s := testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} })
	e.Delete(s)
	e.WantReady("db", v1alpha1.ReasonSecretMissing)
	testenv.Update(e.Client, s, func(s *corev1.Secret) { s.Finalizers = nil })
	e.WantSecret("db", "value", "x")
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	if is := e.Secret("db"); is.UID == s.UID {
		t.Error("the Secret is the one that was being deleted, want a new one")
	}
}

// TestClassHandedOver moves a store to the operator of another class. That operator takes over the objects that are
// in sync, too.
func TestClassHandedOver(t *testing.T) {
	e := newOwnEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.synced("db")
	second := &env{e.SecondOperator(func(f *operator.Flags) { f.ControllerClass = "second" })}
	second.Server = fake.NewServer()
	second.Backend = second.Server.Backend("main")
	second.Backend.Put("db", []byte("two"))
	second.Start()
	e.WantStore("store", v1alpha1.ReasonStoreValid)

	s := &fakev1.FakeStore{ObjectMeta: e.Meta("store")}
	testenv.Update(e.Client, s, func(s *fakev1.FakeStore) { s.Spec.Controller = "second" })
	e.Eventually(func() string {
		if !slices.ContainsFunc(second.Backend.Calls(), func(fake.Record) bool { return true }) {
			return "the second operator has not called the provider"
		}
		return ""
	})
	testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Data["value"] = []byte("drift") })
	e.wantData("db", holds("value", "two"))
}
