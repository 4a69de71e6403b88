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

// TestRefreshPolicy checks which events cause a read of the provider, under each policy.
func TestRefreshPolicy(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change spec
		// onTime and onChange are true if the interval, or a change, causes a read.
		onTime, onChange bool
	}{
		"Periodic":    {"reads on the interval and on changes", refreshes(v1alpha1.RefreshPeriodic), true, true},
		"OnChange":    {"reads on changes only", refreshes(v1alpha1.RefreshOnChange), false, true},
		"CreatedOnce": {"reads once", refreshes(v1alpha1.RefreshCreatedOnce), false, false},
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
								return fmt.Sprintf("%s: the value does not follow %s", tc.reason, what)
							}
						}
						return ""
					})
				} else {
					reads := e.Backend.ReadsOf("db")
					e.WaitForEvents()
					if got := e.Backend.ReadsOf("db"); got != reads || !cmp.Equal(before, e.dataOf("db")) {
						t.Errorf("%s: %s caused a read of the provider", tc.reason, what)
					}
				}
				e.WantReady("db", v1alpha1.ReasonSecretSynced)
				// The Secret is written before the status, which the next process reads.
				e.Eventually(func() string {
					es := e.Get("db")
					return cmp.Diff(es.Annotations[v1alpha1.RefreshRequestAnnotation], es.Status.ObservedRefreshRequest)
				})
			}
			follows("no event", false, func() {})
			follows("a label", tc.onChange, func() {
				testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Labels = map[string]string{"a": "b"} })
			})
			follows("an annotation", tc.onChange, func() {
				testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Annotations = map[string]string{"a": "b"} })
			})
			follows("the spec", tc.onChange, func() { testenv.Update(e.Client, e.Get("db"), testenv.Fills("other", "db")) })
			follows("time", tc.onTime, func() {
				clock.step(2 * time.Hour)
				e.triggerReconcile("db") // The queue uses the real time.
			})
			follows("a request", true, func() { testenv.Update(e.Client, e.Get("db"), testenv.Request("1")) })
			follows("the same request", false, func() { e.triggerReconcile("db") })
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

// TestRequestFails requests a refresh that fails. The status shows that the request was answered, and the request is not lost over
// a restart.
func TestRequestFails(t *testing.T) {
	t.Parallel()
	for _, p := range []v1alpha1.RefreshPolicy{v1alpha1.RefreshPeriodic, v1alpha1.RefreshOnChange, v1alpha1.RefreshCreatedOnce} {
		t.Run(string(p), func(t *testing.T) {
			e := newIdleEnv(t)
			e.Serve(e.Server.Kinds())
			e.Backend.Put("db", []byte("0"))
			e.synced("db", refreshes(p))
			repair := e.Backend.Inject(fake.Fault{Key: "db", Err: provider.NewError(provider.Denied, "not allowed")})
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			// state returns the request that was answered, the one that was served, and the reason of Ready.
			state := func() []string {
				st := e.Get("db").Status
				return []string{st.AttemptedRefreshRequest, st.ObservedRefreshRequest, meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionReady).Reason}
			}
			e.Eventually(func() string { return cmp.Diff([]string{"1", "", v1alpha1.ReasonSecretSyncedError}, state()) })
			e.Stop()
			repair()
			e.Backend.Put("db", []byte("1"))
			e.Serve(e.Server.Kinds())
			e.Eventually(func() string {
				return cmp.Diff([]string{"1", "1", v1alpha1.ReasonSecretSynced, "1"}, append(state(), e.dataOf("db")["value"]))
			})
		})
	}
}

// TestStatus checks the whole status in the states of an object.
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
				t.Errorf("%s: %s is %s; kstatus reads only conditions that are True", what, c.Type, c.Status)
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
	want("in sync", 1, v1alpha1.ReasonSecretSynced, ready, both, is)

	// A failure leaves sources and binding as they are: the Secret still has the values from before.
	repair := e.Backend.Inject(fake.Fault{Call: fake.CallGetBatch, Err: provider.NewError(provider.Denied, "not allowed")})
	testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
	want("the provider denies", 1, v1alpha1.ReasonSecretSyncedError, trying, both, is)
	repair()
	testenv.Update(e.Client, e.Get("db"), testenv.Request("2"))
	want("the provider allows again", 1, v1alpha1.ReasonSecretSynced, ready, both, is)

	testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].SecretKey = es.Spec.Data[1].SecretKey })
	want("an invalid spec", 2, v1alpha1.ReasonInvalidSpec, stuck, both, is)
	testenv.Update(e.Client, e.Get("db"), testenv.Fills("a", "a"))
	want("a valid spec", 3, v1alpha1.ReasonSecretSynced, ready, both[:1], is)

	testenv.Update(e.Client, e.Get("db"), creates(v1alpha1.CreateNone))
	want("None", 4, v1alpha1.ReasonSecretSynced, ready, both[:1], nil)
	testenv.Update(e.Client, e.Get("db"), creates(""))
	want("Owner again", 5, v1alpha1.ReasonSecretSynced, ready, both[:1], is)

	testenv.Update(e.Client, e.Get("db"), deletes(v1alpha1.DeletionDelete))
	want("a policy that changes nothing yet", 6, v1alpha1.ReasonSecretSynced, ready, both[:1], is)
	e.Backend.Delete("a")
	e.refresh("db")
	want("the remote secret is deleted", 6, v1alpha1.ReasonSecretDeleted, ready, nil, nil)

	testenv.Update(e.Client, e.Get("db"), into(v1alpha1.Target{Name: "shared", CreationPolicy: v1alpha1.CreateMerge}))
	want("the target is missing", 7, v1alpha1.ReasonSecretMissing, trying, nil, nil)
	testenv.Update(e.Client, e.Get("db"), func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
	e.WantReady("db", v1alpha1.ReasonSuspended)
	if got := e.Get("db").Status; len(got.Conditions) != 1 || got.ObservedGeneration != 8 {
		t.Errorf("suspended: conditions are %+v", got.Conditions)
	}
}

// TestEvents checks the Events of an object: none for the first sync, then one for each write, failure and recovery.
func TestEvents(t *testing.T) {
	e := newOwnEnv(t)
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
	e.refresh("db") // Without a change there is no Event.
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
		t.Errorf("the first sync has the events %v", got)
	}
	e.Stop()
	e.Start()
	e.WaitForEvents()
	want("Created", "Deleted", "SecretSynced", "SecretSyncedError", "Updated")
}

// TestReadyKeepsItsTime checks that lastTransitionTime changes only with the status of the condition.
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
