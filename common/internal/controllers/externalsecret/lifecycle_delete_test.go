package externalsecret_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// TestDeletion deletes ExternalSecrets of every policy, with Secrets that they created and with Secrets that existed
// before. The garbage collector deletes owned Secrets; the others stay byte for byte.
func TestDeletion(t *testing.T) {
	t.Parallel()
	objects := map[string]struct {
		reason string
		target v1alpha1.Target
		// there is true if the Secret existed before, with a key of a user.
		there bool
		kept  func(flag v1alpha1.CleanupPolicy) bool
	}{
		"ondelete":       {"the garbage collector deletes it", v1alpha1.Target{CleanupPolicy: onDelete}, false, no},
		"adopted":        {"an adopted Secret is owned: it is deleted with its foreign keys", v1alpha1.Target{CleanupPolicy: onDelete}, true, no},
		"never":          {"it stays", v1alpha1.Target{CleanupPolicy: never}, false, yes},
		"never-adopted":  {"it stays", v1alpha1.Target{CleanupPolicy: never}, true, yes},
		"unset":          {"the flag decides", v1alpha1.Target{}, false, isNever},
		"unset-adopted":  {"the flag decides", v1alpha1.Target{}, true, isNever},
		"frozen":         {"the garbage collector deletes immutable Secrets, too", v1alpha1.Target{CleanupPolicy: onDelete, Immutable: true}, false, no},
		"frozen-never":   {"it stays", v1alpha1.Target{CleanupPolicy: never, Immutable: true}, false, yes},
		"orphan":         {"it has no owner", v1alpha1.Target{CreationPolicy: v1alpha1.CreateOrphan}, false, yes},
		"merge":          {"the object's own keys stay, too", v1alpha1.Target{CreationPolicy: v1alpha1.CreateMerge}, true, yes},
		"createormerge":  {"it has no owner", v1alpha1.Target{CreationPolicy: v1alpha1.CreateCreateOrMerge}, false, yes},
		"delete-policy":  {"deletionPolicy concerns only deletions at the provider", v1alpha1.Target{CleanupPolicy: never, DeletionPolicy: v1alpha1.DeletionDelete}, false, yes},
		"none":           {"the object wrote nothing", v1alpha1.Target{CreationPolicy: v1alpha1.CreateNone}, true, yes},
		"orphan-adopted": {"it has no owner", v1alpha1.Target{CreationPolicy: v1alpha1.CreateOrphan}, true, yes},
	}
	for _, flag := range []v1alpha1.CleanupPolicy{onDelete, never} {
		t.Run(string(flag), func(t *testing.T) {
			e := newOwnEnv(t, withDefault(flag))
			for name, o := range objects {
				e.Backend.Put(name, []byte("x"))
				if o.there {
					e.plain(name, "foreign", "keep")
				}
				e.Create(e.ExternalSecret(name, into(o.target)))
			}
			before := map[string]*corev1.Secret{}
			for name := range objects {
				e.WantReady(name, v1alpha1.ReasonSecretSynced)
				before[name] = e.Secret(name)
			}
			for name := range objects {
				e.Delete(e.Get(name))
			}
			for name, o := range objects {
				if o.kept(flag) {
					continue
				}
				e.Eventually(func() string {
					if e.Secret(name) != nil {
						return o.reason + ": the Secret " + name + " still exists"
					}
					return ""
				})
			}
			e.WaitForEvents()
			for name, o := range objects {
				if o.kept(flag) {
					e.wantUnchanged(before[name])
					// No operator restores the Secret any longer.
					before[name] = testenv.Update(e.Client, e.Secret(name), func(s *corev1.Secret) {
						if s.Immutable == nil {
							s.Data["value"] = []byte("mine now")
						}
					})
				}
			}
			e.WaitForEvents()
			e.Stop()
			e.Start()
			e.WaitForEvents()
			for name, o := range objects {
				if o.kept(flag) {
					e.wantUnchanged(before[name])
				}
			}
		})
	}
}

// TestReplaced deletes an object and creates it again at once, as replacing tools do. Under OnDelete the garbage
// collector deletes the Secret and the operator creates it again; under Never it stays. In the end the mark is that
// of the new object.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for _, p := range []v1alpha1.CleanupPolicy{onDelete, never} {
		t.Run(string(p), func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			es := e.synced("db", into(v1alpha1.Target{CleanupPolicy: p}))
			before := e.Secret("db")
			for range 5 {
				e.Delete(es)
				es = e.ExternalSecret("db", into(v1alpha1.Target{CleanupPolicy: p}))
				e.Create(es)
			}
			is := func() string {
				s := e.Secret("db")
				switch {
				case s == nil:
					return "the Secret does not exist"
				case operatortest.OwnedBy(s, es) != (p == onDelete), len(s.OwnerReferences) > 1:
					return fmt.Sprintf("owners are %v", s.OwnerReferences)
				case target.Marks(s.Annotations)["db"].UID != es.UID:
					return "the mark is not that of the new object"
				}
				return cmp.Diff(holds("value", "x"), e.dataOf("db"))
			}
			e.Eventually(is)
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
			e.WaitForEvents()
			if wrong := is(); wrong != "" {
				t.Error(wrong)
			}
			if now := e.Secret("db"); p == never && now.UID != before.UID {
				t.Error("it is another Secret")
			}
		})
	}
}

func yes(v1alpha1.CleanupPolicy) bool          { return true }
func no(v1alpha1.CleanupPolicy) bool           { return false }
func isNever(flag v1alpha1.CleanupPolicy) bool { return flag == never }

// TestCascade deletes an owner with each propagation policy of kubectl.
func TestCascade(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		how    metav1.DeletionPropagation
		kept   bool
	}{
		"Background": {"the default of kubectl", metav1.DeletePropagationBackground, false},
		"Foreground": {"the Secret does not block the deletion", metav1.DeletePropagationForeground, false},
		"Orphan":     {"the user keeps the Secret of an owner", metav1.DeletePropagationOrphan, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			es := e.synced("db", into(v1alpha1.Target{CleanupPolicy: onDelete}))
			before := e.Secret("db")
			if err := e.API.Delete(e.Ctx, es, client.PropagationPolicy(tc.how)); err != nil {
				t.Fatal(err)
			}
			e.Eventually(func() string {
				if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(es), es); !kerrors.IsNotFound(err) {
					return fmt.Sprintf("the ExternalSecret still exists: %v", err)
				}
				return ""
			})
			if !tc.kept {
				e.wantData("db", nil)
				return
			}
			e.WaitForEvents()
			now := e.Secret("db")
			if now == nil || len(now.OwnerReferences) > 0 {
				t.Fatalf("%s: the Secret is %v", tc.reason, now)
			}
			if diff := cmp.Diff(unowned(before), unowned(now)); diff != "" {
				t.Errorf("%s: -before, +now:\n%s", tc.reason, diff)
			}
		})
	}
}
