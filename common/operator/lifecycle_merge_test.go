package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// mergesInto has an ExternalSecret merge into a Secret.
func mergesInto(secret string) spec {
	return into(v1alpha1.Target{Name: secret, CreationPolicy: v1alpha1.CreateMerge})
}

// every sets refreshInterval.
func every(d v1alpha1.Duration) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshInterval = d }
}

// wantData waits until a Secret holds exactly this.
func (e *env) wantData(name string, want map[string]string) {
	e.Helper()
	e.eventually(func() string { return cmp.Diff(want, e.dataOf(name)) })
}

// TestMergeStandstill has two objects that merge different keys into the Secret of a person, and a
// third that wants a key of the first. Over ten refreshes of each no operator writes to the Secret.
func TestMergeStandstill(t *testing.T) {
	e := newEnv(t)
	for _, key := range []string{"one", "two", "late", "free"} {
		e.backend.Put(key, []byte(key))
	}
	e.plain("shared", "foreign", "keep")
	e.synced("one", mergesInto("shared"), fills("a", "one"), every("1s"))
	e.synced("two", mergesInto("shared"), fills("b", "two"), every("1s"))
	want := holds("foreign", "keep", "a", "one", "b", "two")
	if diff := cmp.Diff(want, e.dataOf("shared")); diff != "" {
		t.Fatalf("two that merge different keys: -want, +got:\n%s", diff)
	}
	e.create(e.externalSecret("late", mergesInto("shared"), fills("a", "late", "c", "free")))
	c := e.wantReady("late", v1alpha1.ReasonConflict)
	if !strings.Contains(c.Message, `"a"`) || !strings.Contains(c.Message, `"shared"`) || strings.Contains(c.Message, `"c"`) {
		t.Errorf("message is %q, want it to name the key and the Secret", c.Message)
	}
	want["c"] = "free"
	e.wantData("shared", want)
	e.wantReady("one", v1alpha1.ReasonSecretSynced)
	e.wantReady("two", v1alpha1.ReasonSecretSynced)

	before, since, reads := e.secret("shared"), time.Now(), e.backend.ReadsOf("late")
	one, two := e.backend.ReadsOf("one"), e.backend.ReadsOf("two")
	e.eventually(func() string {
		if got := e.secret("shared").ResourceVersion; got != before.ResourceVersion {
			t.Fatalf("resourceVersion is %s after %s, want it to stand still at %s", got, time.Since(since), before.ResourceVersion)
		}
		if n, m := e.backend.ReadsOf("one")-one, e.backend.ReadsOf("two")-two; n < 10 || m < 10 {
			return fmt.Sprintf("the two were refreshed %d and %d times", n, m)
		}
		return ""
	})
	if got := e.backend.ReadsOf("late") - reads; got != 0 {
		t.Errorf("the one in conflict read %d times, want none: its key is not free", got)
	}
	e.wantNoWrites(since)

	// In peace each still follows its own values.
	e.backend.Put("one", []byte("one2"))
	e.backend.Put("free", []byte("free2"))
	e.refresh("late")
	want["a"], want["c"] = "one2", "free2"
	e.wantData("shared", want)
	e.wantReady("late", v1alpha1.ReasonConflict)
}

// wantNoWrites fails if an operator has written anything in this namespace since.
func (e *env) wantNoWrites(since time.Time) {
	e.Helper()
	events, err := cluster.ReadAuditLog(since)
	if err != nil {
		e.Fatal(err)
	}
	for _, ev := range events {
		if ev.IsWrite() && ev.ObjectRef.Namespace == e.ns && strings.HasPrefix(ev.UserAgent, "direct-secrets/") {
			e.Errorf("it wrote: %s %s/%s %s, answered %d", ev.Verb, ev.ObjectRef.Resource, ev.ObjectRef.Subresource, ev.ObjectRef.Name, ev.ResponseStatus.Code)
		}
	}
}

// TestMergeConflict has two objects want one key, in every combination that lets them share.
func TestMergeConflict(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason        string
		first, second v1alpha1.CreationPolicy
		// theirs is the value that the second has for the key; the first has "first".
		theirs string
	}{
		"Merge":         {"the present holder keeps it", v1alpha1.CreateMerge, v1alpha1.CreateMerge, "second"},
		"EqualValues":   {"an equal value is a conflict, too, though an apply sees none", v1alpha1.CreateMerge, v1alpha1.CreateMerge, "first"},
		"CreateOrMerge": {"the present holder keeps it", v1alpha1.CreateCreateOrMerge, v1alpha1.CreateCreateOrMerge, "second"},
		"OwnerHolds":    {"who merges yields to the owner", v1alpha1.CreateOwner, v1alpha1.CreateMerge, "second"},
		"OrphanHolds":   {"who merges yields to who made it", v1alpha1.CreateOrphan, v1alpha1.CreateMerge, "second"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.backend.Put("first", []byte("first"))
			e.backend.Put("second", []byte(tc.theirs))
			if tc.first == v1alpha1.CreateMerge {
				e.plain("shared", "foreign", "keep")
			}
			target := func(p v1alpha1.CreationPolicy) spec {
				return into(v1alpha1.Target{Name: "shared", CreationPolicy: p})
			}
			e.synced("first", target(tc.first), fills("a", "first"))
			before := e.dataOf("shared")
			second := e.externalSecret("second", target(tc.second), fills("a", "second"))
			e.create(second)
			e.wantReady("second", v1alpha1.ReasonConflict)
			e.settle()
			if diff := cmp.Diff(before, e.dataOf("shared")); diff != "" {
				t.Errorf("%s: -before, +now:\n%s", tc.reason, diff)
			}
			e.wantReady("first", v1alpha1.ReasonSecretSynced)

			// Another restart changes nothing, whichever is looked at first.
			e.stop()
			still := e.secret("shared")
			e.start()
			e.refresh("first")
			e.refresh("second")
			e.wantReady("second", v1alpha1.ReasonConflict)
			e.wantReady("first", v1alpha1.ReasonSecretSynced)
			e.wantUnchanged(still)
		})
	}
}

// TestMergeAtOnce starts an operator over two objects that want one key, and no holder yet.
func TestMergeAtOnce(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][2]string{"Different": {"one", "two"}, "Equal": {"same", "same"}} {
		t.Run(name, func(t *testing.T) {
			e := newIdleEnv(t)
			e.backend.Put("one", []byte(values[0]))
			e.backend.Put("two", []byte(values[1]))
			e.plain("shared", "foreign", "keep")
			e.create(e.externalSecret("one", mergesInto("shared"), fills("a", "one")))
			e.create(e.externalSecret("two", mergesInto("shared"), fills("a", "two")))
			e.start()
			var before *corev1.Secret
			e.eventually(func() string {
				one, two := e.ready("one"), e.ready("two")
				if one+" "+two != "SecretSynced Conflict" && one+" "+two != "Conflict SecretSynced" {
					return "they are " + one + " and " + two
				}
				before = e.secret("shared")
				return ""
			})
			e.settle()
			e.wantUnchanged(before)
		})
	}
}

// ready returns the reason of the Ready condition; empty if it is not of the present generation.
func (e *env) ready(name string) string {
	e.Helper()
	es := e.get(name)
	for _, c := range es.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady && c.ObservedGeneration == es.Generation {
			return c.Reason
		}
	}
	return ""
}

// TestMergeHandOver frees a key in each way that there is; who wanted it takes it.
func TestMergeHandOver(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		free   func(e *env, holder *v1alpha1.ExternalSecret)
	}{
		"Dropped": {"the holder drops the entry", func(e *env, holder *v1alpha1.ExternalSecret) {
			update(e, holder, fills("other", "first"))
		}},
		"Deleted": {"the holder is deleted; Merge leaves its keys", func(e *env, holder *v1alpha1.ExternalSecret) {
			e.delete(holder)
		}},
		"Renamed": {"the holder writes another Secret", func(e *env, holder *v1alpha1.ExternalSecret) {
			e.plain("elsewhere", "foreign", "keep")
			update(e, holder, mergesInto("elsewhere"))
		}},
		"WritesNothing": {"the holder turns to creationPolicy None", func(e *env, holder *v1alpha1.ExternalSecret) {
			update(e, holder, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CreationPolicy = v1alpha1.CreateNone })
		}},
		"Gone": {"the provider has no more for the holder, which lets go", func(e *env, holder *v1alpha1.ExternalSecret) {
			update(e, holder, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.DeletionPolicy = v1alpha1.DeletionMerge })
			e.backend.Delete("first")
			update(e, holder, request("1"))
		}},
		"RemovedByHand": {"a person removes the Secret and makes it again", func(e *env, holder *v1alpha1.ExternalSecret) {
			update(e, holder, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
			e.wantReady("first", v1alpha1.ReasonSuspended)
			e.delete(e.secret("shared"))
			e.plain("shared", "foreign", "keep")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.backend.Put("first", []byte("first"))
			e.backend.Put("second", []byte("second"))
			e.plain("shared", "foreign", "keep")
			first := e.synced("first", mergesInto("shared"), fills("a", "first"))
			e.create(e.externalSecret("second", mergesInto("shared"), fills("a", "second")))
			e.wantReady("second", v1alpha1.ReasonConflict)

			tc.free(e, first)
			e.promptly(tc.reason+", and the other took the key", func() string {
				if got := e.dataOf("shared"); got["a"] != "second" || got["foreign"] != "keep" {
					return fmt.Sprintf("%s: the Secret holds %v", tc.reason, got)
				}
				return ""
			})
			e.wantReady("second", v1alpha1.ReasonSecretSynced)
			// It is its own now: with the entry goes the key, of which no other manager holds a share.
			update(e, e.get("second"), fills("b", "second"))
			e.eventually(func() string {
				got := e.dataOf("shared")
				delete(got, "other") // the new key of the first
				return cmp.Diff(holds("foreign", "keep", "b", "second"), got)
			})
		})
	}
}

// TestMergeQueue has several wait for one key. When it is freed one of them takes it, and the others wait
// on; nobody oscillates.
func TestMergeQueue(t *testing.T) {
	e := newEnv(t)
	e.plain("shared", "foreign", "keep")
	e.backend.Put("holder", []byte("holder"))
	holder := e.synced("holder", mergesInto("shared"), fills("a", "holder"))
	waiting := map[string]bool{"w1": true, "w2": true, "w3": true, "w4": true}
	for name := range waiting {
		e.backend.Put(name, []byte(name))
		e.create(e.externalSecret(name, mergesInto("shared"), fills("a", name), every("1s")))
	}
	for name := range waiting {
		e.wantReady(name, v1alpha1.ReasonConflict)
	}
	e.delete(holder)
	for len(waiting) > 0 {
		var taken string
		e.eventually(func() string {
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
				return fmt.Sprintf("in step are %v, in conflict %v, of %d", synced, conflict, len(waiting))
			}
			taken = synced[0]
			return cmp.Diff(holds("foreign", "keep", "a", taken), e.dataOf("shared"))
		})
		before := e.secret("shared")
		e.settle()
		e.wantUnchanged(before)
		delete(waiting, taken)
		e.delete(e.get(taken))
	}
}

// TestMergeOutlivesOwner has the collector take the Secret of an owner, into which another merged.
func TestMergeOutlivesOwner(t *testing.T) {
	e := newEnv(t)
	e.backend.Put("owner", []byte("first"))
	e.backend.Put("guest", []byte("second"))
	owner := e.synced("owner", into(v1alpha1.Target{Name: "shared"}), fills("a", "owner"))
	e.synced("guest", mergesInto("shared"), fills("b", "guest"))
	e.create(e.externalSecret("rival", mergesInto("shared"), fills("a", "guest")))
	e.wantReady("rival", v1alpha1.ReasonConflict)
	e.delete(owner)
	e.wantReady("guest", v1alpha1.ReasonSecretMissing)
	e.wantReady("rival", v1alpha1.ReasonSecretMissing)
	e.wantData("shared", nil)
	e.plain("shared", "foreign", "keep")
	e.promptly("both took the new Secret", func() string {
		return cmp.Diff(holds("foreign", "keep", "a", "second", "b", "second"), e.dataOf("shared"))
	})
	e.wantReady("guest", v1alpha1.ReasonSecretSynced)
	e.wantReady("rival", v1alpha1.ReasonSecretSynced)
}

// TestMergeWaits has objects wait for their target, without a call to the provider.
func TestMergeWaits(t *testing.T) {
	e := newEnv(t)
	e.backend.Put("db", []byte("x"))
	es := e.externalSecret("db", mergesInto("shared"))
	e.create(es)
	missing := func() {
		t.Helper()
		c := e.wantReady("db", v1alpha1.ReasonSecretMissing)
		if !strings.Contains(c.Message, `"shared"`) {
			t.Errorf("message is %q, want it to name the Secret", c.Message)
		}
	}
	appear := func(what string, change ...func(*corev1.Secret)) {
		t.Helper()
		s := &corev1.Secret{ObjectMeta: e.meta("shared"), Data: map[string][]byte{"foreign": []byte("keep")}}
		for _, f := range change {
			f(s)
		}
		e.create(s)
		e.promptly(what, func() string {
			return cmp.Diff(holds("foreign", "keep", "value", "x"), e.dataOf("shared"))
		})
		e.wantReady("db", v1alpha1.ReasonSecretSynced)
	}
	missing()
	e.wantStore("store", v1alpha1.ReasonStoreValid)
	e.settle()
	if got := e.backend.ReadsOf("db"); got != 0 {
		t.Errorf("%d reads while the target is missing, want none", got)
	}
	appear("the target was created, and merged into")

	for range 2 {
		before := e.backend.ReadsOf("db")
		e.delete(e.secret("shared"))
		missing()
		if got := e.backend.ReadsOf("db") - before; got != 0 {
			t.Errorf("%d reads when the target was deleted, want none", got)
		}
		appear("the target was created again, and merged into")
	}

	// Made by a tool that knows our label, and while the operator is away.
	e.delete(e.secret("shared"))
	missing()
	appear("the target was created with the label", func(s *corev1.Secret) {
		s.Labels = map[string]string{"fake.direct-secrets.io/managed": "true"}
	})
	e.delete(e.secret("shared"))
	missing()
	e.stop()
	e.start()
	e.wantStore("store", v1alpha1.ReasonStoreValid)
	e.settle()
	appear("the target was created after a restart, and merged into")
	e.delete(e.secret("shared"))
	missing()
	e.stop()
	e.plain("shared", "foreign", "keep")
	e.start()
	e.promptly("the target was created during a restart, and merged into", func() string {
		return cmp.Diff(holds("foreign", "keep", "value", "x"), e.dataOf("shared"))
	})
}

// TestMergeWaitsOnRequest asks for a refresh while the target is missing, and the provider has nothing:
// what is missing is said, and nobody is asked.
func TestMergeWaitsOnRequest(t *testing.T) {
	e := newEnv(t)
	e.wantStore("store", v1alpha1.ReasonStoreValid)
	e.create(e.externalSecret("db", mergesInto("shared"), every("1s")))
	e.wantReady("db", v1alpha1.ReasonSecretMissing)
	update(e, e.get("db"), request("1"))
	update(e, e.get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} })
	e.settle()
	e.wantReady("db", v1alpha1.ReasonSecretMissing)
	if got := e.backend.ReadsOf("db"); got != 0 {
		t.Errorf("%d reads while the target is missing, want none", got)
	}
}
