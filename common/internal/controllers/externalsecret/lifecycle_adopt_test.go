package externalsecret_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// TestAdoptionIsWhole adopts Secrets that other tools created in various ways, and then removes an entry of the spec.
// The key must be removed, too: no other field manager may still hold it.
func TestAdoptionIsWhole(t *testing.T) {
	t.Parallel()
	const body = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db"},%q:{"a":%q,"b":%q,"foreign":%q}}`
	apply := func(e *env, manager, field string, values ...any) {
		s := &corev1.Secret{ObjectMeta: e.Meta("db")}
		raw := fmt.Sprintf(body, append([]any{field}, values...)...)
		if err := e.API.Patch(e.Ctx, s, client.RawPatch(types.ApplyPatchType, []byte(raw)), client.FieldOwner(manager)); err != nil {
			e.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		made   func(e *env)
	}{
		"AppliedEqual": {"with equal values, where an apply sees no conflict", func(e *env) { apply(e, "kubectl", "data", "YQ==", "Yg==", "a2VlcA==") }},
		"Edited": {"created by one tool and edited by another", func(e *env) {
			s := e.plain("db", "a", "a", "foreign", "keep")
			s.Data["b"] = []byte("b")
			if err := e.API.Update(e.Ctx, s, client.FieldOwner("kubectl-edit")); err != nil {
				e.Fatal(err)
			}
		}},
		"LeftByAnother": {"by a deleted ExternalSecret of another name", func(e *env) {
			e.Delete(e.synced("elder", testenv.Fills("a", "a", "b", "b"), into(v1alpha1.Target{Name: "db", CleanupPolicy: never})))
			testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Data["foreign"] = []byte("keep") })
		}},
	}
	for name, tc := range cases {
		for _, p := range []v1alpha1.CreationPolicy{v1alpha1.CreateOwner, v1alpha1.CreateMerge} {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				e := newEnv(t)
				e.Backend.Put("a", []byte("a"))
				e.Backend.Put("b", []byte("b"))
				tc.made(e)
				es := e.synced("db", testenv.Fills("a", "a", "b", "b"), creates(p))
				if diff := cmp.Diff(holds("a", "a", "b", "b", "foreign", "keep"), e.dataOf("db")); diff != "" {
					t.Fatalf("%s: after adoption: -want, +got:\n%s", tc.reason, diff)
				}
				if s := e.Secret("db"); operatortest.OwnedBy(s, es) != (p == v1alpha1.CreateOwner) {
					t.Errorf("%s: owners are %v", tc.reason, s.OwnerReferences)
				}
				testenv.Update(e.Client, es, testenv.Fills("a", "a"))
				e.WantReady("db", v1alpha1.ReasonSecretSynced)
				if diff := cmp.Diff(holds("a", "a", "foreign", "keep"), e.dataOf("db")); diff != "" {
					t.Errorf("%s: after an entry was removed: -want, +got:\n%s", tc.reason, diff)
				}
				if got := holdersOf(e.Secret("db"), "a"); !cmp.Equal(got, []string{target.Manager("db")}) {
					t.Errorf("%s: %v hold key a, want the object alone", tc.reason, got)
				}
			})
		}
	}
}

// holdersOf returns the field managers that hold a key of data.
func holdersOf(s *corev1.Secret, key string) []string {
	var holders []string
	for _, m := range s.ManagedFields {
		set := fieldpath.NewSet()
		if err := set.FromJSON(strings.NewReader(string(m.FieldsV1.GetRawBytes()))); err == nil && set.Has(fieldpath.MakePathOrDie("data", key)) {
			holders = append(holders, m.Manager)
		}
	}
	return holders
}

// TestForeignSecret has a target with another owner. The object writes nothing, and resumes once the Secret is free.
func TestForeignSecret(t *testing.T) {
	t.Parallel()
	yes := true
	cases := map[string]struct {
		reason  string
		change  spec
		made    func(e *env)
		message string
		free    func(e *env)
	}{
		"Controlled": {
			"a controller of another Kind", nil,
			func(e *env) { e.ownedByConfigMap("db", &yes) }, `controlled by ConfigMap "owner"`,
			func(e *env) {
				testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.OwnerReferences = nil })
			},
		},
		"OwnerGone": {
			"the owner is deleted, and the garbage collector deletes the Secret", nil,
			func(e *env) { e.ownedByConfigMap("db", &yes) }, `controlled by ConfigMap "owner"`,
			func(e *env) { e.Delete(&corev1.ConfigMap{ObjectMeta: e.Meta("owner")}) },
		},
		"RivalMerges": {
			"another ExternalSecret merged into it first", nil,
			func(e *env) {
				e.plain("db", "foreign", "keep")
				e.synced("rival", mergesInto("db"))
			}, `ExternalSecret "rival"`,
			func(e *env) {
				testenv.Update(e.Client, e.Get("rival"), into(v1alpha1.Target{Name: "elsewhere", CreationPolicy: v1alpha1.CreateCreateOrMerge}))
			},
		},
		"RivalTurnsToNone": {
			"another ExternalSecret writes it, until its creationPolicy is None", nil,
			func(e *env) { e.synced("rival", into(v1alpha1.Target{Name: "db", CleanupPolicy: never})) }, `ExternalSecret "rival"`,
			func(e *env) {
				testenv.Update(e.Client, e.Get("rival"), into(v1alpha1.Target{Name: "db", CreationPolicy: v1alpha1.CreateNone}))
			},
		},
		"RivalMovesOn": {
			"another ExternalSecret owns it, until its spec names another target", nil,
			func(e *env) { e.synced("rival", into(v1alpha1.Target{Name: "db"})) }, `ExternalSecret "rival"`,
			func(e *env) { testenv.Update(e.Client, e.Get("rival"), into(v1alpha1.Target{Name: "elsewhere"})) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("mine"))
			e.Backend.Put("rival", []byte("theirs"))
			tc.made(e)
			before := e.Secret("db")
			change := []spec{testenv.Fills("key", "db")}
			if tc.change != nil {
				change = append(change, tc.change)
			}
			e.Create(e.ExternalSecret("db", change...))
			c := e.WantReady("db", v1alpha1.ReasonConflict)
			if !strings.Contains(c.Message, tc.message) || !strings.Contains(c.Message, "another spec.target.name") {
				t.Errorf("message is %q, want it to contain %q and the fix", c.Message, tc.message)
			}
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			e.WaitForEvents()
			e.wantUnchanged(before)
			if es := e.Get("db"); es.Status.Binding != nil {
				t.Errorf("status.binding names %s, which has another owner", es.Status.Binding.Name)
			}
			tc.free(e)
			e.Eventually(func() string {
				if got := e.dataOf("db")["key"]; got != "mine" {
					return "the Secret holds " + got
				}
				return ""
			})
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
		})
	}
}

// ownedByConfigMap creates a Secret that a ConfigMap owns.
func (e *env) ownedByConfigMap(name string, controller *bool) {
	e.Helper()
	e.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.NS, Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: e.configMap("owner"), Controller: controller},
		}},
		Data: map[string][]byte{"value": []byte("theirs")},
	})
}
