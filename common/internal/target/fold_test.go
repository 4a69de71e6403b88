package target_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TestApplyAloneCannotRemoveWhatWasPosted shows why the Writer folds: an apply removes only keys that no other entry
// holds, and the entry of our own POST is another one.
func TestApplyAloneCannotRemoveWhatWasPosted(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	e.writes(o.wants("db", "a", "1", "b", "1"))

	e.mustApply("db", o.manager(), data("a", "1", "b", "1"))
	e.mustApply("db", o.manager(), data("a", "1"))
	e.wantData("db", map[string]string{"a": "1", "b": "1"})
}

// TestApplyAloneRemovesUnmanagedKeys shows why keys without an entry get a manager. A tool that applies stringData
// holds none of the resulting keys, and an apply that drops the last managed key removes them all.
func TestApplyAloneRemovesUnmanagedKeys(t *testing.T) {
	e := newEnv(t)
	e.mustApply("db", "flux", map[string]any{"stringData": map[string]string{"theirs": "x"}})
	if diff := cmp.Diff([]string(nil), holders(e.wantData("db", map[string]string{"theirs": "x"}), "theirs")); diff != "" {
		t.Errorf("holders: -want, +got:\n%s", diff)
	}
	e.mustApply("db", "manager", data("a", "1"))
	e.mustApply("db", "manager", map[string]any{})
	e.wantData("db", map[string]string{})
}

// TestApplyAloneCannotRemoveWhatAToolHolds shows that force does not help against the entry of a tool with the equal
// value.
func TestApplyAloneCannotRemoveWhatAToolHolds(t *testing.T) {
	e := newEnv(t)
	e.posted("db", "kubectl-create", "a", "1", "theirs", "x")

	e.mustApply("db", "manager", data("a", "1"))
	e.mustApply("db", "manager", map[string]any{})
	e.wantData("db", map[string]string{"a": "1", "theirs": "x"})
}

func TestFold(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before creates the Secret.
		before         func(e *env, o object)
		managerDeleted func(string) bool
		// want are the keys left after we wrote a and b, and then only a.
		want    map[string]string
		holders map[string][]string
	}{
		"OwnCreate": {
			reason:  "The entry of our own POST becomes an apply.",
			before:  func(e *env, o object) { e.writes(o.wants("db", "a", "1", "b", "1")) },
			want:    map[string]string{"a": "1"},
			holders: map[string][]string{"a": {"direct-secrets:db"}},
		},
		"ToolEqual": {
			reason:  "A key that a tool wrote with the equal value is taken over and removed; its other keys stay with the tool.",
			before:  func(e *env, _ object) { e.posted("db", "kubectl-create", "a", "1", "b", "1", "theirs", "x") },
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"kubectl-create"}},
		},
		"ToolAppliedStringData": {
			reason: "Keys that a tool applied as stringData are taken over, too.",
			before: func(e *env, _ object) {
				e.mustApply("db", "flux", map[string]any{"stringData": map[string]string{"a": "1", "b": "1", "theirs": "x"}})
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"before-first-apply"}},
		},
		"TwoTools": {
			reason: "A key with several managers is taken over from all.",
			before: func(e *env, _ object) {
				e.posted("db", "kubectl-create", "a", "1", "b", "1")
				e.mustApply("db", "flux", data("b", "1"))
				e.mustApply("db", "argo", data("b", "1", "theirs", "x"))
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"argo"}},
		},
		"DeadExternalSecret": {
			reason:         "Keys of a deleted ExternalSecret are taken over; those that we do not want stay.",
			before:         func(e *env, _ object) { e.writes(e.object("dead").wants("db", "a", "1", "b", "1", "c", "1")) },
			managerDeleted: only("direct-secrets:dead"),
			want:           map[string]string{"a": "1", "c": "1"},
			holders:        map[string][]string{"a": {"direct-secrets:db"}, "c": {"direct-secrets:dead"}},
		},
		"NoManagedFields": {
			reason: "A user has reset managedFields: keys with our value count as ours, the others as theirs.",
			before: func(e *env, _ object) {
				e.posted("db", "kubectl-create", "a", "1", "b", "1", "theirs", "x")
				e.resetsManagedFields("db")
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.before(e, o)
			c := target.Others{ManagerDeleted: tc.managerDeleted}
			e.writes(o.wants("db", "a", "1", "b", "1"), c)
			if got := observe(e.secret("db"), "db"); !got.Intact {
				t.Errorf("\n%s\nnot intact after the first apply", tc.reason)
			}
			e.writes(o.wants("db", "a", "1"), c)

			s := e.wantData("db", tc.want)
			if t.Failed() {
				t.Logf("%s\n%v", tc.reason, s.ManagedFields)
			}
			for k, want := range tc.holders {
				if diff := cmp.Diff(want, holders(s, k)); diff != "" {
					t.Errorf("\n%s\nHoldersOf(%s): -want, +got:\n%s", tc.reason, k, diff)
				}
			}
			if got := observe(s, "db"); !got.Intact {
				t.Errorf("\n%s\nnot intact after the second apply", tc.reason)
			}

			// A key left to the tool stays, also when we no longer want any key.
			e.writes(o.wants("db"), c)
			delete(tc.want, "a")
			e.wantData("db", tc.want)
		})
	}
}

// TestFoldOnlyIfNeeded checks that the first change of a Secret is one request, unless the change removes something.
func TestFoldOnlyIfNeeded(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(e *env)
		change func(d *target.Desired)
		folds  int
	}{
		"Value":      {"Nothing is removed.", nil, func(d *target.Desired) { d.Data["a"] = []byte("2") }, 0},
		"More":       {"Nothing is removed.", nil, func(d *target.Desired) { d.Data["z"], d.Labels["z"] = []byte("2"), "z" }, 0},
		"Key":        {"A key is removed.", nil, func(d *target.Desired) { delete(d.Data, "a") }, 1},
		"Label":      {"A label is removed.", nil, func(d *target.Desired) { delete(d.Labels, "l") }, 1},
		"Annotation": {"An annotation is removed.", nil, func(d *target.Desired) { delete(d.Annotations, "n") }, 1},
		"Owner":      {"The ownerReference is removed.", nil, func(d *target.Desired) { d.Owner = nil }, 1},
		"Type":       {"The type is no longer set.", nil, func(d *target.Desired) { d.Type = "" }, 1},
		"Foreign": {
			"Another manager holds a key.", func(e *env) { e.updates("db", "kubectl", setData("theirs", "x")) },
			func(d *target.Desired) { d.Data["a"] = []byte("2") }, 1,
		},
		"NoManagedFields": {
			"No manager holds the keys.", func(e *env) { e.resetsManagedFields("db") },
			func(d *target.Desired) { d.Data["a"] = []byte("2") }, 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			wants := func() *target.Desired {
				d := owned(o.wants("db", "a", "1", "b", "1"), o.reference(true))
				d.Labels["l"], d.Annotations = "l", map[string]string{"n": "n"}
				d.Seal()
				return &d
			}
			e.writes(*wants())
			if tc.before != nil {
				tc.before(e)
			}
			folds := 0
			e.w = e.onFold(func() { folds++ })
			d := wants()
			tc.change(d)
			d.Seal()
			s := e.writes(*d)

			if folds != tc.folds {
				t.Errorf("\n%s\n%d folds, want %d", tc.reason, folds, tc.folds)
			}
			_, hasKey := s.Data["a"]
			_, hasLabel := s.Labels["l"]
			_, hasAnnotation := s.Annotations["n"]
			got := []bool{hasKey, hasLabel, hasAnnotation, len(s.OwnerReferences) == 1}
			if diff := cmp.Diff([]bool{d.Data["a"] != nil, d.Labels["l"] != "", d.Annotations["n"] != "", d.Owner != nil}, got); diff != "" {
				t.Errorf("\n%s\nkey, label, annotation, owner: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOwnRemovesAReferenceThatAToolHolds checks that a reference to us is ours even if a backup tool restored it.
func TestOwnRemovesAReferenceThatAToolHolds(t *testing.T) {
	for _, how := range []string{"Update", "Apply"} {
		t.Run(how, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			e.writes(o.wants("db", "a", "1"))
			if how == "Update" {
				e.updates("db", "restore", func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{o.reference(true)} })
			} else {
				e.mustApply("db", "restore", map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{o.reference(true)}}})
			}
			if s := e.owns(o.wants("db")); len(s.OwnerReferences) != 0 {
				t.Errorf("owners: %v", s.OwnerReferences)
			}
			e.wantData("db", map[string]string{"a": "1"})
		})
	}
}

func TestKeysOfExistingObjectsAreNotTaken(t *testing.T) {
	older := allExist()
	younger := target.Others{ManagerDeleted: func(string) bool { return false }, Older: func(string) bool { return false }}
	cases := map[string]struct {
		reason  string
		before  func(e *env, o object)
		others  target.Others
		blocked []string
		want    map[string]string
		holders map[string][]string
	}{
		"EqualOlder": {
			reason:  "An apply reports no conflict on equal values; the younger object gives the key up.",
			before:  func(e *env, _ object) { e.writes(e.object("other").wants("db", "a", "1", "theirs", "x")) },
			others:  older,
			blocked: []string{"a"},
			want:    map[string]string{"a": "1", "b": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
		"BothHoldWeAreLater": {
			reason: "Both applied the equal value at the same time: the younger one gives the key up.",
			before: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1", "b", "1"))
				e.mustApply("db", "direct-secrets:other", data("a", "1"))
			},
			others:  older,
			blocked: []string{"a"},
			want:    map[string]string{"a": "1", "b": "1"},
			holders: map[string][]string{"a": {"direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
		"BothHoldWeAreFirst": {
			reason: "The older one keeps the key.",
			before: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1", "b", "1"))
				e.mustApply("db", "direct-secrets:other", data("a", "1"))
			},
			others:  younger,
			want:    map[string]string{"a": "1", "b": "1"},
			holders: map[string][]string{"a": {"direct-secrets:db", "direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.before(e, o)
			s, blocked, err := e.w.Apply(e.ctx, e.secret("db"), o.wants("db", "a", "1", "b", "1"), tc.others)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.blocked, blocked); diff != "" {
				t.Errorf("\n%s\nyielded: -want, +got:\n%s", tc.reason, diff)
			}
			e.wantUntouched("db", s)
			e.wantData("db", tc.want)
			for k, want := range tc.holders {
				if diff := cmp.Diff(want, holders(s, k)); diff != "" {
					t.Errorf("\n%s\nHoldersOf(%s): -want, +got:\n%s", tc.reason, k, diff)
				}
			}
			if !observe(s, "db").Intact {
				t.Errorf("\n%s\nthe mark does not describe the fields that we still hold", tc.reason)
			}
		})
	}
}

// TestFreedKey checks that an object gets a key that was given up, and that the two objects do not take turns.
func TestFreedKey(t *testing.T) {
	e := newEnv(t)
	first, later := e.object("first"), e.object("later")
	e.writes(first.wants("db", "a", "1", "b", "1"))
	want := []string{"a"}
	for range 3 {
		_, blocked, err := e.w.Apply(e.ctx, e.secret("db"), later.wants("db", "a", "2"), allExist())
		if diff := cmp.Diff(want, blocked); diff != "" || err != nil {
			t.Fatalf("yielded: -want, +got:\n%s\nerror: %v", diff, err)
		}
		e.writes(first.wants("db", "a", "1", "b", "1"), target.Others{})
	}
	e.writes(first.wants("db", "b", "1"))
	e.writes(later.wants("db", "a", "2"), allExist())
	e.wantData("db", map[string]string{"a": "2", "b": "1"})
}
