package externalsecret_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
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
				e.Serve(e.Server.Kinds(), operator.WithClock(clock.time))
			}
			start()
			e.Backend.Put("db", []byte("0"))
			e.synced("db", tc.change)
			e.WantStore("store", v1alpha1.ReasonStoreValid)
			if got := e.Get("db").Status.NextRefreshTime != nil; got != tc.onTime {
				t.Errorf("%s: status.nextRefreshTime is set: %t", tc.reason, got)
			}

			n := 0
			follows := func(what string, read bool, provoke func()) {
				t.Helper()
				before := e.dataOf("db")
				n++
				value := fmt.Sprint(n)
				e.Backend.Put("db", []byte(value))
				provoke()
				if read {
					e.Eventually(func() string {
						for _, v := range e.dataOf("db") {
							if v != value {
								return fmt.Sprintf("%s: %s is not followed", tc.reason, what)
							}
						}
						return ""
					})
				} else {
					reads := e.Backend.ReadsOf("db")
					e.Settle()
					if got := e.Backend.ReadsOf("db"); got != reads || !cmp.Equal(before, e.dataOf("db")) {
						t.Errorf("%s: %s had the provider read", tc.reason, what)
					}
				}
				e.WantReady("db", v1alpha1.ReasonSecretSynced)
				// The Secret comes before the status, which is what a restart goes by.
				e.Eventually(func() string {
					es := e.Get("db")
					return cmp.Diff(es.Annotations[v1alpha1.RefreshRequestAnnotation], es.Status.ObservedRefreshRequest)
				})
			}
			follows("nothing", false, func() {})
			follows("a label", tc.onChange, func() {
				testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} })
			})
			follows("an annotation", tc.onChange, func() {
				testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Annotations = map[string]string{"a": "b"} })
			})
			follows("the spec", tc.onChange, func() { testenv.Update(e.Client, e.Get("db"), testenv.Fills("other", "db")) })
			follows("time", tc.onTime, func() {
				clock.step(2 * time.Hour)
				e.poke("db") // The queue goes by the real time.
			})
			follows("a request", true, func() { testenv.Update(e.Client, e.Get("db"), testenv.Request("1")) })
			follows("the same request", false, func() { e.poke("db") })
			follows("another request", true, func() { testenv.Update(e.Client, e.Get("db"), testenv.Request("2")) })
			follows("a restart", false, func() { e.Stop(); start() })
			follows("a label, changed during a restart", tc.onChange, func() {
				e.Stop()
				testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = nil })
				start()
			})
			follows("a request, made during a restart", true, func() {
				e.Stop()
				testenv.Update(e.Client, e.Get("db"), testenv.Request("3"))
				start()
			})
			follows("a deleted Secret", true, func() { e.Delete(e.Secret("db")) })
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
			e.Create(e.ExternalSecret("retried", refreshes(p)))
			e.Create(e.ExternalSecret("mended", refreshes(p)))
			e.WantReady("retried", v1alpha1.ReasonSecretSyncedError)
			e.WantReady("mended", v1alpha1.ReasonSecretSyncedError)
			e.Backend.Put("retried", []byte("x"))
			e.Backend.Put("other", []byte("x"))
			testenv.Update(e.Client, e.Get("mended"), testenv.Fills("value", "other"))
			for _, name := range []string{"retried", "mended"} {
				e.WantReady(name, v1alpha1.ReasonSecretSynced)
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
				e.Backend.Put("db", []byte("one"))
				e.synced("db", into(tc.target), refreshes(p))
				e.Backend.Put("db", []byte("two"))
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
	e.WantStore("store", v1alpha1.ReasonStoreValid)
	e.Backend.Put("a", []byte("x"))
	e.Backend.Put("b", []byte("x"))
	e.synced("db", testenv.Fills("a", "a", "b", "b"))
	want := func(what string, generation int64, reason string, types []string, sources []v1alpha1.SourceStatus, binding *v1alpha1.Binding) {
		t.Helper()
		e.WantReady("db", reason)
		st := e.Get("db").Status
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
	repair := e.Backend.Inject(fake.Fault{Err: provider.NewError(provider.Denied, "not allowed")})
	testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
	want("the provider denies", 1, v1alpha1.ReasonSecretSyncedError, trying, both, is)
	repair()
	testenv.Update(e.Client, e.Get("db"), testenv.Request("2"))
	want("it does no more", 1, v1alpha1.ReasonSecretSynced, ready, both, is)

	testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].SecretKey = "not a key" })
	want("an invalid spec", 2, v1alpha1.ReasonInvalidSpec, stuck, both, is)
	testenv.Update(e.Client, e.Get("db"), testenv.Fills("a", "a"))
	want("a valid one", 3, v1alpha1.ReasonSecretSynced, ready, both[:1], is)

	testenv.Update(e.Client, e.Get("db"), creates(v1alpha1.CreateNone))
	want("None", 4, v1alpha1.ReasonSecretSynced, ready, both[:1], nil)
	testenv.Update(e.Client, e.Get("db"), creates(""))
	want("Owner again", 5, v1alpha1.ReasonSecretSynced, ready, both[:1], is)

	testenv.Update(e.Client, e.Get("db"), deletes(v1alpha1.DeletionDelete))
	want("a policy that changes nothing yet", 6, v1alpha1.ReasonSecretSynced, ready, both[:1], is)
	e.Backend.Delete("a")
	e.refresh("db")
	want("gone", 6, v1alpha1.ReasonSecretDeleted, ready, nil, nil)

	testenv.Update(e.Client, e.Get("db"), into(v1alpha1.Target{Name: "shared", CreationPolicy: v1alpha1.CreateMerge}))
	want("the target is awaited", 7, v1alpha1.ReasonSecretMissing, trying, nil, nil)
	testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
	e.WantReady("db", v1alpha1.ReasonSuspended)
	if got := e.Get("db").Status; len(got.Conditions) != 1 || got.ObservedGeneration != 8 {
		t.Errorf("suspended: conditions are %+v", got.Conditions)
	}
}

// TestEvents counts what is told of an object: nothing of the first sync, then what was written, and
// what went wrong and right.
func TestEvents(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.synced("db", deletes(v1alpha1.DeletionDelete))
	e.Backend.Put("quiet", []byte("one"))
	e.synced("quiet")
	want := func(reasons ...string) {
		t.Helper()
		e.Eventually(func() string { return cmp.Diff(reasons, e.EventsOf("db")) })
	}
	e.Backend.Put("db", []byte("two"))
	e.refresh("db")
	want("Updated")
	e.refresh("db") // Nothing new, nothing told.
	repair := e.Backend.Inject(fake.Fault{Key: "db", Err: provider.NewError(provider.Denied, "not allowed")})
	testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
	want("SecretSyncedError", "Updated")
	repair()
	testenv.Update(e.Client, e.Get("db"), testenv.Request("2"))
	want("SecretSynced", "SecretSyncedError", "Updated")
	e.Backend.Delete("db")
	e.refresh("db")
	want("Deleted", "SecretSynced", "SecretSyncedError", "Updated")
	e.Backend.Put("db", []byte("three"))
	e.refresh("db")
	want("Created", "Deleted", "SecretSynced", "SecretSyncedError", "Updated")
	if got := e.EventsOf("quiet"); len(got) > 0 {
		t.Errorf("of the first sync there are events %v", got)
	}
	e.Stop()
	e.Start()
	e.Settle()
	want("Created", "Deleted", "SecretSynced", "SecretSyncedError", "Updated")
}

// TestReadyKeepsItsTime checks that a condition does not flap: its transition time is that of the
// last change of its status.
func TestReadyKeepsItsTime(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	e.synced("db")
	before := meta.FindStatusCondition(e.Get("db").Status.Conditions, v1alpha1.ConditionReady)
	e.Backend.Put("db", []byte("two"))
	e.refresh("db")
	testenv.Update(e.Client, e.Get("db"), testenv.Fills("other", "db"))
	after := e.WantReady("db", v1alpha1.ReasonSecretSynced)
	if !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
		t.Errorf("lastTransitionTime is %s, was %s", after.LastTransitionTime, before.LastTransitionTime)
	}
}
