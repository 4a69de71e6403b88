package externalsecret_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// TestCreationPolicy checks the table of policies: what is created, owned, restored and created again, and when.
func TestCreationPolicy(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		target v1alpha1.Target
		owned  bool
		// atOnce is false if the operator restores the Secret only at the next refresh.
		atOnce bool
	}{
		"Owner":         {"restored at once, with an owner", v1alpha1.Target{CleanupPolicy: onDelete}, true, true},
		"OwnerNever":    {"restored at once, without an owner", v1alpha1.Target{CleanupPolicy: never}, false, true},
		"CreateOrMerge": {"restored at once, without an owner", v1alpha1.Target{CreationPolicy: v1alpha1.CreateCreateOrMerge}, false, true},
		"Orphan":        {"restored at the next refresh", v1alpha1.Target{CreationPolicy: v1alpha1.CreateOrphan}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("right"))
			es := e.synced("db", into(tc.target))
			want := holds("value", "right")
			if diff := cmp.Diff(want, e.dataOf("db")); diff != "" || operatortest.OwnedBy(e.Secret("db"), es) != tc.owned {
				t.Fatalf("%s: owners are %v, data -want, +got:\n%s", tc.reason, e.Secret("db").OwnerReferences, diff)
			}
			for what, harm := range map[string]func(*corev1.Secret){
				"a changed key": func(s *corev1.Secret) { s.Data["value"] = []byte("wrong") },
				"a removed key": func(s *corev1.Secret) { s.Data = nil },
				"a deletion":    nil,
			} {
				reads, harmed := e.Backend.ReadsOf("db"), map[string]string(nil)
				if harm == nil {
					e.Delete(e.Secret("db"))
				} else {
					testenv.Update(e.Client, e.Secret("db"), harm)
					harmed = e.dataOf("db")
				}
				if tc.atOnce {
					e.Eventually(func() string { return cmp.Diff(want, e.dataOf("db")) })
					continue
				}
				e.WaitForEvents()
				if diff := cmp.Diff(harmed, e.dataOf("db"), equalEmpty); diff != "" {
					t.Errorf("%s: %s was restored before the next refresh: -want, +got:\n%s", tc.reason, what, diff)
				}
				if got := e.Backend.ReadsOf("db") - reads; got != 0 {
					t.Errorf("%s: %s: %d reads before the next refresh", tc.reason, what, got)
				}
				e.refresh("db")
				e.wantData("db", want)
			}
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
		})
	}
}

// equalEmpty treats an empty map and nil as equal.
var equalEmpty = cmp.Comparer(func(a, b map[string]string) bool { return len(a) == 0 && len(b) == 0 || cmp.Equal(a, b) })

// TestNone reads the provider and writes no Secret, whether one exists or not.
func TestNone(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		// there creates a Secret beforehand; nil for none.
		there func(e *env)
	}{
		"Absent": {"no Secret is created", nil},
		"Plain":  {"the Secret of a user stays as it is", func(e *env) { e.plain("db", "value", "theirs") }},
		"OfAnother": {"the Secret of another ExternalSecret stays as it is, without a conflict", func(e *env) {
			e.synced("other", into(v1alpha1.Target{Name: "db"}), testenv.Fills("value", "db"))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			if tc.there != nil {
				tc.there(e)
			}
			before := e.Secret("db")
			e.synced("db", creates(v1alpha1.CreateNone))
			e.wantDifference("db", before, "x")
			if b := e.Get("db").Status.Binding; b != nil {
				t.Errorf("%s: status.binding names %s", tc.reason, b.Name)
			}
			if got := len(e.Get("db").Status.Sources); got != 1 {
				t.Errorf("%d sources were read, want 1", got)
			}
			e.Backend.Delete("db")
			testenv.Update(e.Client, e.Get("db"), testenv.Request("1"))
			c := e.WantReady("db", v1alpha1.ReasonSecretSyncedError)
			if !strings.HasPrefix(c.Message, `NotFound: "db"`) {
				t.Errorf("message is %q, want it to report that the secret does not exist", c.Message)
			}
			e.Backend.Put("db", []byte("y"))
			testenv.Update(e.Client, e.Get("db"), testenv.Request("2"))
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
			e.wantDifference("db", before, "y")
			if diff := cmp.Diff(before, e.Secret("db")); diff != "" {
				t.Errorf("%s: -before, +now:\n%s", tc.reason, diff)
			}
		})
	}
}

// wantDifference checks what the status reports of the key "value" and a Secret, nil for none.
func (e *env) wantDifference(name string, live *corev1.Secret, value string) {
	e.Helper()
	want := &v1alpha1.Difference{Exists: live != nil}
	if live == nil {
		want.Data.Added = []string{"value"}
	} else if string(live.Data["value"]) != value {
		want.Data.Changed = []string{"value"}
	}
	e.Eventually(func() string { return cmp.Diff(want, e.Get(name).Status.Difference) })
}

// TestCreationPolicyToNone changes creationPolicy to None and back. The Secret stays as it is.
func TestCreationPolicyToNone(t *testing.T) {
	e := newEnv(t)
	e.Backend.Put("db", []byte("one"))
	es := e.synced("db")
	before := e.Secret("db")
	testenv.Update(e.Client, es, creates(v1alpha1.CreateNone))
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.Backend.Put("db", []byte("two"))
	e.refresh("db")
	e.WaitForEvents()
	e.wantUnchanged(before)
	if !operatortest.OwnedBy(before, es) {
		t.Error("the ownerReference was removed")
	}
	e.wantDifference("db", before, "two")
	testenv.Update(e.Client, es, creates(""))
	e.WantSecret("db", "value", "two")
	e.Eventually(func() string { return cmp.Diff((*v1alpha1.Difference)(nil), e.Get("db").Status.Difference) })
}

// TestNoneToOnce changes creationPolicy from None to each other policy under CreatedOnce, with a Secret that exists. The
// read under None does not count, since nothing was written.
func TestNoneToOnce(t *testing.T) {
	t.Parallel()
	for _, to := range []v1alpha1.CreationPolicy{v1alpha1.CreateOwner, v1alpha1.CreateMerge} {
		t.Run(string(to), func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("one"))
			e.plain("db", "value", "theirs")
			es := e.synced("db", creates(v1alpha1.CreateNone), refreshes(v1alpha1.RefreshCreatedOnce))
			testenv.Update(e.Client, es, creates(to))
			e.WantSecret("db", "value", "one")
			e.Eventually(func() string { return cmp.Diff((*v1alpha1.Difference)(nil), e.Get("db").Status.Difference) })
		})
	}
}

// TestCreationPolicyChanges changes creationPolicy of an object in sync; the ownerReference follows, and the values stay.
func TestCreationPolicyChanges(t *testing.T) {
	t.Parallel()
	owner, orphan, merge, either := v1alpha1.CreateOwner, v1alpha1.CreateOrphan, v1alpha1.CreateMerge, v1alpha1.CreateCreateOrMerge
	for _, from := range []v1alpha1.CreationPolicy{owner, merge} {
		t.Run(string(from), func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			e.plain("db", "foreign", "keep")
			es := e.synced("db", creates(from))
			e.WantStore("store", v1alpha1.ReasonStoreValid)
			for _, to := range []v1alpha1.CreationPolicy{orphan, owner, either, owner, merge, owner, from} {
				testenv.Update(e.Client, es, creates(to))
				e.Eventually(func() string {
					if s := e.Secret("db"); operatortest.OwnedBy(s, es) != (to == owner) {
						return fmt.Sprintf("owners are %v", s.OwnerReferences)
					}
					return ""
				})
				e.WantReady("db", v1alpha1.ReasonSecretSynced)
				if diff := cmp.Diff(holds("foreign", "keep", "value", "x"), e.dataOf("db")); diff != "" {
					t.Errorf("after the change to %s: -want, +got:\n%s", to, diff)
				}
			}
		})
	}
}
