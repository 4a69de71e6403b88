package externalsecret_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

const (
	never    = v1alpha1.CleanupNever
	onDelete = v1alpha1.CleanupOnDelete
)

// TestCleanupMoves changes cleanupPolicy and changes it back. The ownerReference follows and nothing else changes,
// whatever the state of the provider.
func TestCleanupMoves(t *testing.T) {
	t.Parallel()
	denied := &fake.Fault{Err: provider.NewError(provider.Denied, "not allowed")}
	hanging := &fake.Fault{Hang: true}
	cases := map[string]struct {
		reason   string
		from, to v1alpha1.CleanupPolicy
		fault    *fake.Fault
		change   spec
	}{
		"ThereAndBack": {"OnDelete has an owner, Never has none", onDelete, never, nil, nil},
		"Denied":       {"the provider is not needed", onDelete, never, denied, nil},
		"HangingBack":  {"the provider is not waited for", never, onDelete, hanging, nil},
		"OnChange":     {"the provider is not read for this change", onDelete, never, nil, func(es *v1alpha1.ExternalSecret) { es.Spec.RefreshPolicy = v1alpha1.RefreshOnChange }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			change := []spec{into(v1alpha1.Target{CleanupPolicy: tc.from})}
			if tc.change != nil {
				change = append(change, tc.change)
			}
			es := e.synced("db", change...)
			before := testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) {
				s.Data["foreign"], s.Labels["foreign"], s.Annotations["foreign"] = []byte("keep"), "keep", "keep"
			})
			e.WantStore("store", v1alpha1.ReasonStoreValid)
			e.WaitForEvents()
			if tc.fault != nil {
				defer e.Backend.Inject(*tc.fault)()
			}
			e.Backend.Reset()
			for _, p := range []v1alpha1.CleanupPolicy{tc.to, tc.from} {
				e.move(es, p, p == onDelete)
			}
			if diff := cmp.Diff(unowned(before), unowned(e.Secret("db"))); diff != "" {
				t.Errorf("%s: more than the owner changed: -before, +now:\n%s", tc.reason, diff)
			}
			calls := slices.DeleteFunc(e.Backend.Calls(), func(r fake.Record) bool {
				// The object of WaitForEvents may be read again, and an answer that is denied has the store checked.
				return tc.fault == denied && r.Call == fake.CallCheck || len(r.Refs) == 1 && r.Refs[0].Key != "db"
			})
			if len(calls) != 0 {
				t.Errorf("%s: the provider was called: %+v", tc.reason, calls)
			}
		})
	}
}

// move changes cleanupPolicy and waits until it has taken effect.
func (e *env) move(es *v1alpha1.ExternalSecret, p v1alpha1.CleanupPolicy, owned bool) {
	e.Helper()
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = p })
	e.Eventually(func() string {
		if s := e.Secret(es.Name); operatortest.OwnedBy(s, es) != owned || len(s.OwnerReferences) > 1 {
			return fmt.Sprintf("owners under %q are %v", p, s.OwnerReferences)
		}
		if got := e.Get(es.Name); got.Status.ObservedGeneration != got.Generation {
			return fmt.Sprintf("observedGeneration is %d of %d", got.Status.ObservedGeneration, got.Generation)
		}
		return ""
	})
	e.WantReady(es.Name, v1alpha1.ReasonSecretSynced)
}

// unowned returns a Secret without the fields that a change of owner changes. The mark holds the generation.
func unowned(s *corev1.Secret) *corev1.Secret {
	s = s.DeepCopy()
	s.OwnerReferences, s.ManagedFields, s.ResourceVersion = nil, nil, ""
	for k := range s.Annotations {
		if strings.HasPrefix(k, v1alpha1.MarkAnnotationPrefix) {
			delete(s.Annotations, k)
		}
	}
	return s
}

// TestCleanupMovesWhileFailing changes cleanupPolicy of an object that is out of sync.
func TestCleanupMovesWhileFailing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		why  string
		fail func(e *env)
	}{
		"Denied": {"the object is in back-off after a failure", func(e *env) {
			e.Backend.Inject(fake.Fault{Call: fake.CallGetBatch, Err: provider.NewError(provider.Denied, "not allowed")})
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			e.WantReady("db", v1alpha1.ReasonSecretSyncedError)
		}},
		"Hanging": {"a read is in progress", func(e *env) {
			e.Backend.Inject(fake.Fault{Hang: true})
			n := e.Backend.Reads()
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			if err := e.Backend.Wait(e.Ctx, n+1, fake.CallGetBatch); err != nil {
				e.Fatal(err)
			}
		}},
		"StoreGone": {"the store does not exist", func(e *env) {
			e.Delete(e.Store("store", "main"))
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			e.WantReady("db", v1alpha1.ReasonStoreNotFound)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			es := e.synced("db")
			e.WantStore("store", v1alpha1.ReasonStoreValid)
			tc.fail(e)
			for _, p := range []v1alpha1.CleanupPolicy{never, onDelete} {
				testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = p })
				e.Eventually(func() string {
					if s := e.Secret("db"); operatortest.OwnedBy(s, es) != (p == onDelete) || string(s.Data["value"]) != "x" {
						return fmt.Sprintf("%s: owners under %s are %v", tc.why, p, s.OwnerReferences)
					}
					return ""
				})
			}
		})
	}
}

// TestCleanupFlag restarts the operator with the other value of its flag. Objects that leave cleanupPolicy unset
// follow, others stay as they are.
func TestCleanupFlag(t *testing.T) {
	e := newOwnEnv(t, withDefault(onDelete))
	const n = 2
	objects := map[string]*v1alpha1.ExternalSecret{}
	for i := range n {
		for prefix, p := range map[string]v1alpha1.CleanupPolicy{"unset": "", "never": never, "ondelete": onDelete} {
			name := fmt.Sprintf("%s-%d", prefix, i)
			e.Backend.Put(name, []byte("x"))
			objects[name] = e.ExternalSecret(name, into(v1alpha1.Target{CleanupPolicy: p}))
			e.Create(objects[name])
		}
	}
	for name := range objects {
		e.WantReady(name, v1alpha1.ReasonSecretSynced)
	}
	for _, flag := range []v1alpha1.CleanupPolicy{never, onDelete} {
		e.Stop()
		before := map[string]*corev1.Secret{}
		for name := range objects {
			before[name] = e.Secret(name)
		}
		e.Backend.Reset()
		e.Flags = []func(*operator.Flags){withDefault(flag)}
		e.Start()
		e.Eventually(func() string {
			for name, es := range objects {
				if s := e.Secret(name); strings.HasPrefix(name, "unset") && operatortest.OwnedBy(s, es) != (flag == onDelete) {
					return fmt.Sprintf("owners of %s are %v", name, s.OwnerReferences)
				}
			}
			return ""
		})
		e.WaitForEvents()
		for name := range objects {
			if got := e.Backend.ReadsOf(name); got != 0 {
				t.Errorf("%s was read %d times after a change of the flag", name, got)
			}
			if strings.HasPrefix(name, "unset") {
				if diff := cmp.Diff(unowned(before[name]), unowned(e.Secret(name))); diff != "" {
					t.Errorf("more than the owner of %s changed: -before, +now:\n%s", name, diff)
				}
				continue
			}
			// A refresh shows that the operator has reconciled the object since.
			e.refresh(name)
			e.wantUnchanged(before[name])
		}
	}
}

// TestSuspendedStays changes policies and the Secret of a suspended object. It is left unchanged until it resumes.
func TestSuspendedStays(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("x"))
	es := e.synced("db", into(v1alpha1.Target{CleanupPolicy: onDelete}))
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = true })
	e.WantReady("db", v1alpha1.ReasonSuspended)
	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = never })
	e.WantReady("db", v1alpha1.ReasonSuspended)
	edited := testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Data["value"] = []byte("edited") })
	e.WaitForEvents()
	e.wantUnchanged(edited)
	e.Delete(edited)
	e.WaitForEvents()
	e.wantData("db", nil)

	testenv.Update(e.Client, es, func(es *v1alpha1.ExternalSecret) { es.Spec.Suspend = false })
	e.wantData("db", holds("value", "x"))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	if s := e.Secret("db"); operatortest.OwnedBy(s, es) {
		t.Error("the Secret has an owner")
	}
}
