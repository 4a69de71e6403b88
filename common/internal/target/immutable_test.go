package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// wantSealed fails the test unless a Secret is immutable, and by our write.
func (e *env) wantSealed(reason string, s *corev1.Secret) {
	e.Helper()
	if s.Immutable == nil || !*s.Immutable {
		e.Errorf("\n%s\nthe Secret is not immutable", reason)
	}
	if got := observe(s, "db"); !got.Sealed || !got.Intact {
		e.Errorf("\n%s\nsealed: %v, intact: %v; want both", reason, got.Sealed, got.Intact)
	}
}

func TestCreateImmutable(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	e.writes(immutable(owned(o.wants("db", "a", "1", "empty", ""), o.reference(true))))
	s := e.wantData("db", map[string]string{"a": "1", "empty": ""})
	e.wantSealed("The POST sets immutable.", s)

	e.writes(o.wants("mutable", "a", "1"))
	if s := e.secret("mutable"); s.Immutable != nil {
		t.Errorf("immutable: got %v for a Secret that must not be", *s.Immutable)
	}
}

// TestApplySeals sets spec.target.immutable for an existing Secret. An apply must make it immutable, also together with
// its last change.
func TestApplySeals(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(e *env, o object)
		want   map[string]string
		// theirs is true if another writer made the Secret immutable, too.
		theirs bool
	}{
		"AfterCreate": {
			"The Secret of our POST becomes immutable.",
			func(e *env, o object) { e.writes(o.wants("db", "a", "1", "b", "1")) },
			map[string]string{"a": "1", "b": "1"}, false,
		},
		"AfterApply": {
			"An applied Secret becomes immutable.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1", "b", "1"))
				e.writes(o.wants("db", "a", "1", "b", "1"))
			},
			map[string]string{"a": "1", "b": "1"}, false,
		},
		"WithOtherValues": {
			"The last values are written with immutable, and obsolete keys are removed.",
			func(e *env, o object) { e.writes(o.wants("db", "a", "0", "c", "0")) },
			map[string]string{"a": "1", "b": "1"}, false,
		},
		"WithForeignKeys": {
			"Keys of others become immutable with the rest.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", setData("theirs", "x"))
			},
			map[string]string{"a": "1", "b": "1", "theirs": "x"}, false,
		},
		"Adopted": {
			"A Secret that another writer created becomes immutable.",
			func(e *env, _ object) { e.posted("db", "kubectl", "a", "1", "theirs", "x") },
			map[string]string{"a": "1", "b": "1", "theirs": "x"}, false,
		},
		"SealedByAPerson": {
			"A Secret that another writer made immutable with our values becomes immutable by us, too.",
			func(e *env, _ object) {
				e.posted("db", "kubectl", "a", "1", "b", "1")
				e.updates("db", "kubectl", seal)
			},
			map[string]string{"a": "1", "b": "1"}, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.before(e, o)
			e.writes(immutable(o.wants("db", "a", "1", "b", "1")))
			s := e.wantData("db", tc.want)
			e.wantSealed(tc.reason, s)

			// A repeated apply is no change, and any other one is refused.
			e.writes(immutable(o.wants("db", "a", "1", "b", "1")))
			e.wantUntouched("db", s)
			for what, d := range map[string]target.Desired{
				"another value":    immutable(o.wants("db", "a", "2", "b", "1")),
				"a mutable Secret": o.wants("db", "a", "1", "b", "1"),
			} {
				if tc.theirs && !d.Immutable {
					continue // We give up the field, and the Secret stays immutable by the other writer.
				}
				_, _, err := e.w.Apply(e.ctx, e.secret("db"), d, target.Others{})
				if kind, message := kindOf(err); kind != "Invalid" || !strings.Contains(message, "mmutable") {
					t.Errorf("\n%s\nApply(%s): got %s: %s, want Invalid: …mmutable…", tc.reason, what, kind, message)
				}
				if diff := cmp.Diff(plainOf(s), plainOf(e.secret("db"))); diff != "" {
					t.Errorf("\n%s\nApply(%s): -before, +after:\n%s", tc.reason, what, diff)
				}
			}
		})
	}
}

// TestOwnSealed changes the ownerReference and the mark of an immutable Secret. Its data must stay, and it must stay
// immutable.
func TestOwnSealed(t *testing.T) {
	binary := string([]byte{0, 255, '\n', 0xc3, 0x28})
	for _, before := range []string{"AfterCreate", "AfterApply"} {
		t.Run(before, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			d := immutable(o.wants("db", "a", "1", "binary", binary, "empty", ""))
			if before == "AfterApply" {
				e.writes(o.wants("db", "a", "1"))
			}
			was := e.writes(d)
			other := e.object("other")
			e.updates("db", "kubectl", func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{other.reference(false)} })

			// Without values, both with and without immutable in the spec.
			for i, bare := range []target.Desired{
				owned(immutable(o.wants("db")), o.reference(true)), immutable(o.wants("db")),
				owned(o.wants("db"), o.reference(true)), o.wants("db"),
			} {
				e.owns(bare)
				s := e.wantData("db", map[string]string{"a": "1", "binary": binary, "empty": ""})
				e.wantSealed(before, s)
				want := []metav1.OwnerReference{other.reference(false)}
				if bare.Owner != nil {
					want = append(want, *bare.Owner)
				}
				if diff := cmp.Diff(want, s.OwnerReferences); diff != "" {
					t.Errorf("owners after Own %d: -want, +got:\n%s", i, diff)
				}
				if diff := cmp.Diff(target.Marks(was.Annotations), target.Marks(s.Annotations)); diff != "" {
					t.Errorf("mark after Own %d: -want, +got:\n%s", i, diff)
				}
			}
		})
	}
}

// TestOwnTakesOverSealed takes over an immutable Secret of a former object with our name. Its data stays unchanged, and
// the mark must describe it as ours.
func TestOwnTakesOverSealed(t *testing.T) {
	for _, before := range []string{"AfterCreate", "AfterApply"} {
		t.Run(before, func(t *testing.T) {
			e := newEnv(t)
			o, deleted := e.object("db"), object{e: e, name: "db", uid: newUID()}
			if before == "AfterApply" {
				e.writes(owned(deleted.wants("db", "a", "0"), deleted.externalSecret()))
			}
			d := immutable(deleted.wants("db", "a", "1", "empty", ""))
			d.Mark.Inputs = "inputs of the former object"
			e.writes(owned(d, deleted.externalSecret()))

			s := e.owns(owned(immutable(o.wants("db")), o.reference(true)))
			e.wantUntouched("db", s)
			e.wantData("db", map[string]string{"a": "1", "empty": ""})
			e.wantSealed(before, s)
			if diff := cmp.Diff([]metav1.OwnerReference{o.reference(true)}, s.OwnerReferences); diff != "" {
				t.Errorf("owners: -want, +got:\n%s", diff)
			}
			want := created(immutable(o.wants("db", "a", "1", "empty", ""))).Mark
			if diff := cmp.Diff(want, target.Marks(s.Annotations)["db"]); diff != "" {
				t.Errorf("mark: -want, +got:\n%s", diff)
			}
		})
	}
}
