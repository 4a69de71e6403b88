package externalsecret_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// mergesInto sets a target with creationPolicy Merge.
func mergesInto(secret string) spec {
	return into(v1alpha1.Target{Name: secret, CreationPolicy: v1alpha1.CreateMerge})
}

// every sets refreshInterval.
func every(d v1alpha1.Duration) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = d }
}

// wantData waits until the data of a Secret are exactly as wanted.
func (e *env) wantData(name string, want map[string]string) {
	e.Helper()
	e.Eventually(func() string { return cmp.Diff(want, e.dataOf(name)) })
}

// TestMergeStandstill has two objects that merge different keys into the Secret of a user, and a third that wants a
// key of the first. Over three refreshes of each, no operator writes to the Secret.
func TestMergeStandstill(t *testing.T) {
	e := newEnv(t)
	for _, key := range []string{"one", "two", "late", "free"} {
		e.Backend.Put(key, []byte(key))
	}
	e.plain("shared", "foreign", "keep")
	e.synced("one", mergesInto("shared"), testenv.Fills("a", "one"))
	e.synced("two", mergesInto("shared"), testenv.Fills("b", "two"))
	want := holds("foreign", "keep", "a", "one", "b", "two")
	if diff := cmp.Diff(want, e.dataOf("shared")); diff != "" {
		t.Fatalf("after two objects merged different keys: -want, +got:\n%s", diff)
	}
	e.Create(e.ExternalSecret("late", mergesInto("shared"), testenv.Fills("a", "late", "c", "free")))
	c := e.WantReady("late", v1alpha1.ReasonConflict)
	if !strings.Contains(c.Message, `"a"`) || !strings.Contains(c.Message, `"shared"`) || strings.Contains(c.Message, `"c"`) {
		t.Errorf("message is %q, want it to name the key and the Secret", c.Message)
	}
	want["c"] = "free"
	e.wantData("shared", want)
	e.WantReady("one", v1alpha1.ReasonSecretSynced)
	e.WantReady("two", v1alpha1.ReasonSecretSynced)

	before, reads := e.Secret("shared"), e.Backend.ReadsOf("late")
	for range 3 {
		e.refresh("one")
		e.refresh("two")
	}
	e.wantUnchanged(before)
	if got := e.Backend.ReadsOf("late") - reads; got != 0 {
		t.Errorf("the object in conflict was read %d times, want none: its key is not free", got)
	}

	// Without a conflict, each key still follows its remote secret.
	e.Backend.Put("one", []byte("one2"))
	e.Backend.Put("free", []byte("free2"))
	e.refresh("one")
	e.refresh("late")
	want["a"], want["c"] = "one2", "free2"
	e.wantData("shared", want)
	e.WantReady("late", v1alpha1.ReasonConflict)
}

// TestMergeConflict has two objects that want the same key, for every combination of policies that can share a
// Secret.
func TestMergeConflict(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason        string
		first, second v1alpha1.CreationPolicy
		// theirs is the value of the second object for the key; the first one has "first".
		theirs string
	}{
		"Merge":       {"the present holder keeps the key", v1alpha1.CreateMerge, v1alpha1.CreateMerge, "second"},
		"EqualValues": {"an equal value is a conflict, too, although an apply reports none", v1alpha1.CreateMerge, v1alpha1.CreateMerge, "first"},
		"OwnerHolds":  {"the merging object defers to the owner", v1alpha1.CreateOwner, v1alpha1.CreateMerge, "second"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("first", []byte("first"))
			e.Backend.Put("second", []byte(tc.theirs))
			if tc.first == v1alpha1.CreateMerge {
				e.plain("shared", "foreign", "keep")
			}
			target := func(p v1alpha1.CreationPolicy) spec {
				return into(v1alpha1.Target{Name: "shared", CreationPolicy: p})
			}
			e.synced("first", target(tc.first), testenv.Fills("a", "first"))
			before := e.dataOf("shared")
			second := e.ExternalSecret("second", target(tc.second), testenv.Fills("a", "second"))
			e.Create(second)
			e.WantReady("second", v1alpha1.ReasonConflict)
			e.WaitForEvents()
			if diff := cmp.Diff(before, e.dataOf("shared")); diff != "" {
				t.Errorf("%s: -before, +now:\n%s", tc.reason, diff)
			}
			e.WantReady("first", v1alpha1.ReasonSecretSynced)

			// Refreshes change nothing.
			still := e.Secret("shared")
			e.refresh("first")
			e.refresh("second")
			e.WantReady("second", v1alpha1.ReasonConflict)
			e.WantReady("first", v1alpha1.ReasonSecretSynced)
			e.wantUnchanged(still)
		})
	}
}

// ready returns the reason of the Ready condition; empty if it is for another generation.
func (e *env) ready(name string) string {
	e.Helper()
	es := e.Get(name)
	for _, c := range es.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.ObservedGeneration == es.Generation {
			return c.Reason
		}
	}
	return ""
}

// TestMergeHandOver frees a key in each possible way; the waiting object takes it.
func TestMergeHandOver(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		free   func(e *env, holder *v1alpha1.ExternalSecret)
	}{
		"Dropped": {"the spec of the holder drops the entry", func(e *env, holder *v1alpha1.ExternalSecret) {
			testenv.Update(e.Client, holder, testenv.Fills("other", "first"))
		}},
		"Deleted": {"the holder is deleted; Merge leaves its keys", func(e *env, holder *v1alpha1.ExternalSecret) {
			e.Delete(holder)
		}},
		"Gone": {"the remote secret of the holder is deleted, and its key is removed", func(e *env, holder *v1alpha1.ExternalSecret) {
			testenv.Update(e.Client, holder, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.DeletionPolicy = v1alpha1.DeletionMerge })
			e.Backend.Delete("first")
			testenv.Update(e.Client, holder, testenv.Request("1"))
		}},
		"RemovedByHand": {"a user deletes the Secret and creates it again", func(e *env, holder *v1alpha1.ExternalSecret) {
			testenv.Update(e.Client, holder, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
			e.WantReady("first", v1alpha1.ReasonSuspended)
			e.Delete(e.Secret("shared"))
			e.plain("shared", "foreign", "keep")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("first", []byte("first"))
			e.Backend.Put("second", []byte("second"))
			e.plain("shared", "foreign", "keep")
			first := e.synced("first", mergesInto("shared"), testenv.Fills("a", "first"))
			e.Create(e.ExternalSecret("second", mergesInto("shared"), testenv.Fills("a", "second")))
			e.WantReady("second", v1alpha1.ReasonConflict)

			tc.free(e, first)
			e.Eventually(func() string {
				if got := e.dataOf("shared"); got["a"] != "second" || got["foreign"] != "keep" {
					return fmt.Sprintf("%s: the Secret holds %v", tc.reason, got)
				}
				return ""
			})
			e.WantReady("second", v1alpha1.ReasonSecretSynced)
			// The second object is now the only holder: without the entry, the key is removed.
			testenv.Update(e.Client, e.Get("second"), testenv.Fills("b", "second"))
			e.Eventually(func() string {
				got := e.dataOf("shared")
				delete(got, "other") // the new key of the first
				return cmp.Diff(holds("foreign", "keep", "b", "second"), got)
			})
		})
	}
}

// TestMergeQueue has several objects that wait for one key. When it is free, one of them takes it, and the others
// keep waiting; they do not oscillate.
func TestMergeQueue(t *testing.T) {
	e := newEnv(t)
	e.plain("shared", "foreign", "keep")
	e.Backend.Put("holder", []byte("holder"))
	holder := e.synced("holder", mergesInto("shared"), testenv.Fills("a", "holder"))
	waiting := map[string]bool{"w1": true, "w2": true, "w3": true, "w4": true}
	for name := range waiting {
		e.Backend.Put(name, []byte(name))
		e.Create(e.ExternalSecret(name, mergesInto("shared"), testenv.Fills("a", name)))
	}
	for name := range waiting {
		e.WantReady(name, v1alpha1.ReasonConflict)
	}
	e.Delete(holder)
	for len(waiting) > 0 {
		var taken string
		e.Eventually(func() string {
			var synced, conflict []string
			for name := range waiting {
				switch e.ready(name) {
				case v1alpha1.ReasonSecretSynced:
					synced = append(synced, name)
				case v1alpha1.ReasonConflict:
					conflict = append(conflict, name)
				}
			}
			if len(synced) != 1 || len(synced)+len(conflict) != len(waiting) {
				return fmt.Sprintf("in sync are %v, in conflict %v, of %d", synced, conflict, len(waiting))
			}
			taken = synced[0]
			return cmp.Diff(holds("foreign", "keep", "a", taken), e.dataOf("shared"))
		})
		before := e.Secret("shared")
		e.WaitForEvents()
		e.wantUnchanged(before)
		delete(waiting, taken)
		e.Delete(e.Get(taken))
	}
}

// TestMergeWaits has objects that wait for their target, without a call to the provider.
func TestMergeWaits(t *testing.T) {
	e := newOwnEnv(t)
	e.Backend.Put("db", []byte("x"))
	es := e.ExternalSecret("db", mergesInto("shared"))
	e.Create(es)
	missing := func() {
		t.Helper()
		c := e.WantReady("db", v1alpha1.ReasonSecretMissing)
		if !strings.Contains(c.Message, `"shared"`) {
			t.Errorf("message is %q, want it to name the Secret", c.Message)
		}
	}
	appear := func(what string, change ...func(*corev1.Secret)) {
		t.Helper()
		s := &corev1.Secret{ObjectMeta: e.Meta("shared"), Data: map[string][]byte{"foreign": []byte("keep")}}
		for _, f := range change {
			f(s)
		}
		e.Create(s)
		e.Eventually(func() string {
			if diff := cmp.Diff(holds("foreign", "keep", "value", "x"), e.dataOf("shared")); diff != "" {
				return what + ": -want, +is:\n" + diff
			}
			return ""
		})
		e.WantReady("db", v1alpha1.ReasonSecretSynced)
	}
	missing()
	e.WantStore("store", v1alpha1.ReasonStoreValid)
	e.WaitForEvents()
	if got := e.Backend.ReadsOf("db"); got != 0 {
		t.Errorf("%d reads while the target is missing, want none", got)
	}
	appear("the target was created")

	// The new target has the operator's label, or is created during a restart.
	e.Delete(e.Secret("shared"))
	missing()
	appear("the target was created with the label", func(s *corev1.Secret) {
		s.Labels = map[string]string{"fake.direct-secrets.io/managed": "true"}
	})
	e.Delete(e.Secret("shared"))
	missing()
	e.Stop()
	e.plain("shared", "foreign", "keep")
	e.Start()
	e.Eventually(func() string {
		return cmp.Diff(holds("foreign", "keep", "value", "x"), e.dataOf("shared"))
	})
}

// TestMergeOutlivesOwner has the garbage collector delete the Secret of an owner, into which another object merged.
func TestMergeOutlivesOwner(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("owner", []byte("first"))
	e.Backend.Put("guest", []byte("second"))
	owner := e.synced("owner", into(v1alpha1.Target{Name: "shared"}), testenv.Fills("a", "owner"))
	e.synced("guest", mergesInto("shared"), testenv.Fills("b", "guest"))
	e.Delete(owner)
	e.WantReady("guest", v1alpha1.ReasonSecretMissing)
	// Before the deletion, it could take the key over and keep the Secret.
	e.Create(e.ExternalSecret("rival", mergesInto("shared"), testenv.Fills("a", "guest")))
	e.WantReady("rival", v1alpha1.ReasonSecretMissing)
	e.wantData("shared", nil)
	e.plain("shared", "foreign", "keep")
	e.Eventually(func() string {
		return cmp.Diff(holds("foreign", "keep", "a", "second", "b", "second"), e.dataOf("shared"))
	})
	e.WantReady("guest", v1alpha1.ReasonSecretSynced)
	e.WantReady("rival", v1alpha1.ReasonSecretSynced)
}
