package operator_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// refreshes sets refreshPolicy.
func refreshes(p v1alpha1.RefreshPolicy) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = p }
}

// TestRefreshPolicy goes through what may have the provider read, under each policy.
func TestRefreshPolicy(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change spec
		// onTime and onChange say what has the provider read.
		onTime, onChange bool
	}{
		"Default":     {"Periodic is the default, and so is an hour", refreshes(""), true, true},
		"Periodic":    {"with time and with changes", refreshes(v1alpha1.RefreshPeriodic), true, true},
		"OnChange":    {"with changes only", refreshes(v1alpha1.RefreshOnChange), false, true},
		"CreatedOnce": {"once", refreshes(v1alpha1.RefreshCreatedOnce), false, false},
		"Zero":        {"an interval of 0 is as CreatedOnce", every("0"), false, false},
		"ZeroSeconds": {"however it is written", every("0s"), false, false},
		"OnChangeZero": {"the interval is not for OnChange", func(es *v1alpha1.ExternalSecret) {
			es.Spec.RefreshPolicy, es.Spec.RefreshInterval = v1alpha1.RefreshOnChange, "0"
		}, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newIdleEnv(t)
			clock := newStepping()
			start := func() {
				e.run(e.operator(append(withKinds(e.server.Kinds()...), operator.WithClock(clock.time))...))
			}
			start()
			e.backend.Put("db", []byte("0"))
			e.synced("db", tc.change)
			e.wantStore("store", v1alpha1.ReasonStoreValid)
			if got := e.get("db").Status.NextRefreshTime != nil; got != tc.onTime {
				t.Errorf("%s: status.nextRefreshTime is set: %t", tc.reason, got)
			}

			n := 0
			follows := func(what string, read bool, provoke func()) {
				t.Helper()
				before := e.dataOf("db")
				n++
				value := fmt.Sprint(n)
				e.backend.Put("db", []byte(value))
				provoke()
				if read {
					e.eventually(func() string {
						for _, v := range e.dataOf("db") {
							if v != value {
								return fmt.Sprintf("%s: %s is not followed", tc.reason, what)
							}
						}
						return ""
					})
				} else {
					reads := e.backend.ReadsOf("db")
					e.settle()
					if got := e.backend.ReadsOf("db"); got != reads || !cmp.Equal(before, e.dataOf("db")) {
						t.Errorf("%s: %s had the provider read", tc.reason, what)
					}
				}
				e.wantReady("db", v1alpha1.ReasonSecretSynced)
				// The Secret comes before the status, which is what a restart goes by.
				e.eventually(func() string {
					es := e.get("db")
					return cmp.Diff(es.Annotations[v1alpha1.RefreshRequestAnnotation], es.Status.ObservedRefreshRequest)
				})
			}
			follows("nothing", false, func() {})
			follows("a label", tc.onChange, func() {
				update(e, e.get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} })
			})
			follows("an annotation", tc.onChange, func() {
				update(e, e.get("db"), func(es *v1alpha1.ExternalSecret) { es.Annotations = map[string]string{"a": "b"} })
			})
			follows("the spec", tc.onChange, func() { update(e, e.get("db"), fills("other", "db")) })
			follows("time", tc.onTime, func() {
				clock.step(2 * time.Hour)
				e.poke("db") // The queue goes by the real time.
			})
			follows("a request", true, func() { update(e, e.get("db"), request("1")) })
			follows("the same request", false, func() { e.poke("db") })
			follows("another request", true, func() { update(e, e.get("db"), request("2")) })
			follows("a restart", false, func() { e.stop(); start() })
			follows("a label, changed during a restart", tc.onChange, func() {
				e.stop()
				update(e, e.get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = nil })
				start()
			})
			follows("a request, made during a restart", true, func() {
				e.stop()
				update(e, e.get("db"), request("3"))
				start()
			})
			follows("a deleted Secret", true, func() { e.delete(e.secret("db")) })
		})
	}
}

// TestFirstReadFails has the first read fail under policies that read once: it is tried until it
// succeeds, also by a changed spec.
func TestFirstReadFails(t *testing.T) {
	t.Parallel()
	for _, p := range []v1alpha1.RefreshPolicy{v1alpha1.RefreshOnChange, v1alpha1.RefreshCreatedOnce} {
		t.Run(string(p), func(t *testing.T) {
			e := newEnv(t)
			e.create(e.externalSecret("retried", refreshes(p)))
			e.create(e.externalSecret("mended", refreshes(p)))
			e.wantReady("retried", v1alpha1.ReasonSecretSyncedError)
			e.wantReady("mended", v1alpha1.ReasonSecretSyncedError)
			e.backend.Put("retried", []byte("x"))
			e.backend.Put("other", []byte("x"))
			update(e, e.get("mended"), fills("value", "other"))
			for _, name := range []string{"retried", "mended"} {
				e.wantReady(name, v1alpha1.ReasonSecretSynced)
				e.wantData(name, holds("value", "x"))
			}
		})
	}
}

// TestRequests asks for a refresh in states in which little else happens.
func TestRequests(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		target v1alpha1.Target
		want   map[string]string
	}{
		"Owner":         {"the usual", v1alpha1.Target{}, holds("value", "two")},
		"Orphan":        {"it is what Orphan waits for", v1alpha1.Target{CreationPolicy: v1alpha1.CreateOrphan}, holds("value", "two")},
		"Merge":         {"with a Secret of others", v1alpha1.Target{Name: "shared", CreationPolicy: v1alpha1.CreateMerge}, holds("foreign", "keep", "value", "two")},
		"CreateOrMerge": {"with a Secret of others", v1alpha1.Target{Name: "shared", CreationPolicy: v1alpha1.CreateCreateOrMerge}, holds("foreign", "keep", "value", "two")},
		"None":          {"served, though nothing is written", v1alpha1.Target{CreationPolicy: v1alpha1.CreateNone}, nil},
		"Immutable":     {"served without a read", v1alpha1.Target{Immutable: true}, holds("value", "one")},
	}
	for name, tc := range cases {
		for _, p := range []v1alpha1.RefreshPolicy{v1alpha1.RefreshPeriodic, v1alpha1.RefreshOnChange, v1alpha1.RefreshCreatedOnce} {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				e := newEnv(t)
				e.plain("shared", "foreign", "keep")
				e.backend.Put("db", []byte("one"))
				e.synced("db", into(tc.target), refreshes(p))
				e.backend.Put("db", []byte("two"))
				e.refresh("db")
				name := tc.target.Name
				if name == "" {
					name = "db"
				}
				if diff := cmp.Diff(tc.want, e.dataOf(name)); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

// TestStatus goes through the states of an object, and looks at all of its status.
func TestStatus(t *testing.T) {
	e := newEnv(t)
	e.wantStore("store", v1alpha1.ReasonStoreValid)
	e.backend.Put("a", []byte("x"))
	e.backend.Put("b", []byte("x"))
	e.synced("db", fills("a", "a", "b", "b"))
	want := func(what string, generation int64, reason string, types []string, sources []v1alpha1.SourceStatus, binding *v1alpha1.Binding) {
		t.Helper()
		e.wantReady("db", reason)
		st := e.get("db").Status
		if st.ObservedGeneration != generation {
			t.Errorf("%s: observedGeneration is %d, want %d", what, st.ObservedGeneration, generation)
		}
		var got []string
		for _, c := range st.Conditions {
			if c.ObservedGeneration != generation || c.Message == "" || c.LastTransitionTime.IsZero() {
				t.Errorf("%s: condition is %+v", what, c)
			}
			if c.Type != v1alpha1.ConditionReady && c.Status != metav1.ConditionTrue {
				t.Errorf("%s: %s is %s; kstatus looks only at what is True", what, c.Type, c.Status)
			}
			got = append(got, c.Type)
		}
		slices.Sort(got)
		if diff := cmp.Diff(types, got); diff != "" {
			t.Errorf("%s: conditions: -want, +got:\n%s", what, diff)
		}
		if diff := cmp.Diff(sources, st.Sources); diff != "" {
			t.Errorf("%s: sources: -want, +got:\n%s", what, diff)
		}
		if diff := cmp.Diff(binding, st.Binding); diff != "" {
			t.Errorf("%s: binding: -want, +got:\n%s", what, diff)
		}
	}
	ready, trying, stuck := []string{"Ready"}, []string{"Ready", "Reconciling"}, []string{"Ready", "Stalled"}
	both := []v1alpha1.SourceStatus{{Kind: v1alpha1.SourceRemoteSecret, Key: "a", Version: "v1"}, {Kind: v1alpha1.SourceRemoteSecret, Key: "b", Version: "v1"}}
	is := &v1alpha1.Binding{Name: "db"}
	want("in step", 1, v1alpha1.ReasonSecretSynced, ready, both, is)

	// What failed leaves sources and binding as they are: the Secret is still that of then.
	repair := e.backend.Inject(fake.Fault{Err: provider.NewError(provider.Denied, "not allowed")})
	update(e, e.get("db"), request("1"))
	want("the provider denies", 1, v1alpha1.ReasonSecretSyncedError, trying, both, is)
	repair()
	update(e, e.get("db"), request("2"))
	want("it does no more", 1, v1alpha1.ReasonSecretSynced, ready, both, is)

	update(e, e.get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].SecretKey = "not a key" })
	want("an invalid spec", 2, v1alpha1.ReasonInvalidSpec, stuck, both, is)
	update(e, e.get("db"), fills("a", "a"))
	want("a valid one", 3, v1alpha1.ReasonSecretSynced, ready, both[:1], is)

	update(e, e.get("db"), creates(v1alpha1.CreateNone))
	want("None", 4, v1alpha1.ReasonSecretSynced, ready, both[:1], nil)
	update(e, e.get("db"), creates(""))
	want("Owner again", 5, v1alpha1.ReasonSecretSynced, ready, both[:1], is)

	update(e, e.get("db"), deletes(v1alpha1.DeletionDelete))
	want("a policy that changes nothing yet", 6, v1alpha1.ReasonSecretSynced, ready, both[:1], is)
	e.backend.Delete("a")
	e.refresh("db")
	want("gone", 6, v1alpha1.ReasonSecretDeleted, ready, nil, nil)

	update(e, e.get("db"), into(v1alpha1.Target{Name: "shared", CreationPolicy: v1alpha1.CreateMerge}))
	want("the target is awaited", 7, v1alpha1.ReasonSecretMissing, trying, nil, nil)
	update(e, e.get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
	e.wantReady("db", v1alpha1.ReasonSuspended)
	if got := e.get("db").Status; len(got.Conditions) != 1 || got.ObservedGeneration != 8 {
		t.Errorf("suspended: conditions are %+v", got.Conditions)
	}
}

// TestEvents counts what is told of an object: nothing of the first sync, then what was written, and
// what went wrong and right.
func TestEvents(t *testing.T) {
	e := newEnv(t)
	e.backend.Put("db", []byte("one"))
	e.synced("db", deletes(v1alpha1.DeletionDelete))
	e.backend.Put("quiet", []byte("one"))
	e.synced("quiet")
	want := func(reasons ...string) {
		t.Helper()
		e.eventually(func() string { return cmp.Diff(reasons, e.eventsOf("db")) })
	}
	e.backend.Put("db", []byte("two"))
	e.refresh("db")
	want("Updated")
	e.refresh("db") // Nothing new, nothing told.
	repair := e.backend.Inject(fake.Fault{Key: "db", Err: provider.NewError(provider.Denied, "not allowed")})
	update(e, e.get("db"), request("1"))
	want("SecretSyncedError", "Updated")
	repair()
	update(e, e.get("db"), request("2"))
	want("SecretSynced", "SecretSyncedError", "Updated")
	e.backend.Delete("db")
	e.refresh("db")
	want("Deleted", "SecretSynced", "SecretSyncedError", "Updated")
	e.backend.Put("db", []byte("three"))
	e.refresh("db")
	want("Created", "Deleted", "SecretSynced", "SecretSyncedError", "Updated")
	if got := e.eventsOf("quiet"); len(got) > 0 {
		t.Errorf("of the first sync there are events %v", got)
	}
	e.stop()
	e.start()
	e.settle()
	want("Created", "Deleted", "SecretSynced", "SecretSyncedError", "Updated")
}

// eventsOf returns the reasons of the events of an ExternalSecret, sorted.
func (e *env) eventsOf(name string) []string {
	e.Helper()
	var list corev1.EventList
	if err := api.List(e.ctx, &list, client.InNamespace(e.ns)); err != nil {
		e.Fatal(err)
	}
	var reasons []string
	for _, ev := range list.Items {
		if ev.InvolvedObject.Kind == "ExternalSecret" && ev.InvolvedObject.Name == name {
			reasons = append(reasons, ev.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

// TestReadyKeepsItsTime checks that a condition does not flap: its transition time is that of the
// last change of its status.
func TestReadyKeepsItsTime(t *testing.T) {
	e := newEnv(t)
	e.backend.Put("db", []byte("one"))
	e.synced("db")
	before := meta.FindStatusCondition(e.get("db").Status.Conditions, v1alpha1.ConditionReady)
	e.backend.Put("db", []byte("two"))
	e.refresh("db")
	update(e, e.get("db"), fills("other", "db"))
	after := e.wantReady("db", v1alpha1.ReasonSecretSynced)
	if !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
		t.Errorf("lastTransitionTime is %s, was %s", after.LastTransitionTime, before.LastTransitionTime)
	}
}
