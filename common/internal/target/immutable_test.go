package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// wantSealed fails unless a Secret is immutable, and by us.
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
	e.wantSealed("As the POST asked.", s)

	e.writes(o.wants("mutable", "a", "1"))
	if s := e.secret("mutable"); s.Immutable != nil {
		t.Errorf("immutable: got %v of a Secret that shall not be", *s.Immutable)
	}
}

// A Secret that was written before spec.target.immutable was set is sealed by an apply, also together
// with its last change.
func TestApplySeals(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(e *env, o object)
		want   map[string]string
		// theirs is true if the seal is somebody else's, too.
		theirs bool
	}{
		"AfterCreate": {
			"The entry of our POST is folded first.",
			func(e *env, o object) { e.writes(o.wants("db", "a", "1", "b", "1")) },
			map[string]string{"a": "1", "b": "1"}, false,
		},
		"AfterApply": {
			"What was applied is sealed.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1", "b", "1"))
				e.writes(o.wants("db", "a", "1", "b", "1"))
			},
			map[string]string{"a": "1", "b": "1"}, false,
		},
		"WithOtherValues": {
			"The last values come with the seal, and what is not wanted goes.",
			func(e *env, o object) { e.writes(o.wants("db", "a", "0", "c", "0")) },
			map[string]string{"a": "1", "b": "1"}, false,
		},
		"WithForeignKeys": {
			"What others wrote is sealed with the rest.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", setData("theirs", "x"))
			},
			map[string]string{"a": "1", "b": "1", "theirs": "x"}, false,
		},
		"Adopted": {
			"So is what somebody else made.",
			func(e *env, _ object) { e.posted("db", "kubectl", "a", "1", "theirs", "x") },
			map[string]string{"a": "1", "b": "1", "theirs": "x"}, false,
		},
		"SealedByAPerson": {
			"What somebody else sealed with our values is sealed by us, too.",
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

			// The same again is no change, and anything else is refused.
			e.writes(immutable(o.wants("db", "a", "1", "b", "1")))
			e.wantUntouched("db", s)
			for what, d := range map[string]target.Desired{
				"another value":    immutable(o.wants("db", "a", "2", "b", "1")),
				"a mutable Secret": o.wants("db", "a", "1", "b", "1"),
			} {
				if tc.theirs && !d.Immutable {
					continue // We let go, and it stays as they made it.
				}
				_, _, err := e.w.Apply(e.ctx, e.secret("db"), d, target.Contest{})
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

// The ownerReference and the mark of a sealed Secret move; its data cannot, and the seal stays.
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

			// Without values, and whether the spec still asks for the seal or not.
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

// A sealed Secret of the object of our name before us becomes ours without a change of its data: the
// mark then says of it what ours would.
func TestOwnTakesOverSealed(t *testing.T) {
	for _, before := range []string{"AfterCreate", "AfterApply"} {
		t.Run(before, func(t *testing.T) {
			e := newEnv(t)
			o, dead := e.object("db"), object{e: e, name: "db", uid: newUID()}
			if before == "AfterApply" {
				e.writes(owned(dead.wants("db", "a", "0"), dead.externalSecret()))
			}
			d := immutable(dead.wants("db", "a", "1", "empty", ""))
			d.Mark.Inputs = "inputs of the dead"
			e.writes(owned(d, dead.externalSecret()))

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
