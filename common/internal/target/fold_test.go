package target_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// Why the Writer folds: an apply removes only what no other entry holds, and the entry of our own
// POST is another one.
func TestApplyAloneCannotRemoveWhatWasPosted(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	e.writes(o.wants("db", "a", "1", "b", "1"))

	e.mustApply("db", o.manager(), data("a", "1", "b", "1"))
	e.mustApply("db", o.manager(), data("a", "1"))
	e.wantData("db", map[string]string{"a": "1", "b": "1"})
}

// Why the Writer looks after keys that no entry holds: a tool that applies stringData holds none of
// the keys that come of it, and who drops the last key that is held removes them all.
func TestApplyAloneRemovesWhatNobodyHolds(t *testing.T) {
	e := newEnv(t)
	e.mustApply("db", "flux", map[string]any{"stringData": map[string]string{"theirs": "x"}})
	if diff := cmp.Diff([]string(nil), holders(e.wantData("db", map[string]string{"theirs": "x"}), "theirs")); diff != "" {
		t.Errorf("holders: -want, +got:\n%s", diff)
	}
	e.mustApply("db", "somebody", data("a", "1"))
	e.mustApply("db", "somebody", map[string]any{})
	e.wantData("db", map[string]string{})
}

// Nor does force help against the entry of a tool that has the equal value.
func TestApplyAloneCannotRemoveWhatAToolHolds(t *testing.T) {
	e := newEnv(t)
	e.posted("db", "kubectl-create", "a", "1", "theirs", "x")

	e.mustApply("db", "somebody", data("a", "1"))
	e.mustApply("db", "somebody", map[string]any{})
	e.wantData("db", map[string]string{"a": "1", "theirs": "x"})
}

func TestFold(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before makes the Secret.
		before func(e *env, o object)
		dead   func(string) bool
		// want is what is left after we wrote a and b, and then only a.
		want    map[string]string
		holders map[string][]string
	}{
		"OwnCreate": {
			reason:  "The entry of our own POST becomes an apply.",
			before:  func(e *env, o object) { e.writes(o.wants("db", "a", "1", "b", "1")) },
			want:    map[string]string{"a": "1"},
			holders: map[string][]string{"a": {"direct-secrets:db"}},
		},
		"OwnCreateOtherValue": {
			reason:  "Whatever the values were.",
			before:  func(e *env, o object) { e.writes(o.wants("db", "a", "0", "b", "0", "c", "0")) },
			want:    map[string]string{"a": "1"},
			holders: map[string][]string{"a": {"direct-secrets:db"}},
		},
		"ToolEqual": {
			reason:  "A key that a tool wrote with the equal value is taken over and goes; its other keys stay, and stay its own.",
			before:  func(e *env, _ object) { e.posted("db", "kubectl-create", "a", "1", "b", "1", "theirs", "x") },
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"kubectl-create"}},
		},
		"ToolOther": {
			reason:  "So does one with another value.",
			before:  func(e *env, _ object) { e.posted("db", "kubectl-create", "a", "0", "b", "0", "theirs", "x") },
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"kubectl-create"}},
		},
		"ToolAppliedEqual": {
			reason: "A tool that applies is no other case.",
			before: func(e *env, _ object) {
				e.mustApply("db", "flux", data("a", "1", "b", "1", "theirs", "x"))
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"flux"}},
		},
		"ToolAppliedStringData": {
			reason: "Nor is one that applies stringData.",
			before: func(e *env, _ object) {
				e.mustApply("db", "flux", map[string]any{"stringData": map[string]string{"a": "1", "b": "1", "theirs": "x"}})
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"before-first-apply"}},
		},
		"TwoTools": {
			reason: "Several tools may hold a key.",
			before: func(e *env, _ object) {
				e.posted("db", "kubectl-create", "a", "1", "b", "1")
				e.mustApply("db", "flux", data("b", "1"))
				e.mustApply("db", "argo", data("b", "1", "theirs", "x"))
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"argo"}},
		},
		"DeadExternalSecret": {
			reason:  "The keys of an ExternalSecret that is gone are taken over likewise; those that we do not want stay.",
			before:  func(e *env, _ object) { e.writes(e.object("dead").wants("db", "a", "1", "b", "1", "c", "1")) },
			dead:    only("direct-secrets:dead"),
			want:    map[string]string{"a": "1", "c": "1"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "c": {"direct-secrets:dead"}},
		},
		"DeadExternalSecretApplied": {
			reason: "Also after it applied.",
			before: func(e *env, _ object) {
				dead := e.object("dead")
				e.writes(dead.wants("db", "a", "0", "b", "0"))
				e.writes(dead.wants("db", "a", "1", "b", "1"))
			},
			dead:    only("direct-secrets:dead"),
			want:    map[string]string{"a": "1"},
			holders: map[string][]string{"a": {"direct-secrets:db"}},
		},
		"NoManagedFields": {
			reason: "Somebody has reset managedFields: what has our value counts as ours, the rest as theirs.",
			before: func(e *env, _ object) {
				e.posted("db", "kubectl-create", "a", "1", "b", "1", "theirs", "x")
				e.resetsManagedFields("db")
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}},
		},
		"NoManagedFieldsOtherValue": {
			reason: "Other values are taken over as well.",
			before: func(e *env, _ object) {
				e.posted("db", "kubectl-create", "a", "0", "b", "0", "theirs", "x")
				e.resetsManagedFields("db")
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"before-first-apply"}},
		},
		"NoManagedFieldsThenUpdated": {
			reason: "What no entry names is theirs all the same, though the API server itself would remove it with our last key.",
			before: func(e *env, _ object) {
				e.posted("db", "kubectl-create", "a", "1", "theirs", "x")
				e.resetsManagedFields("db")
				e.updates("db", "kubectl-edit", setData("b", "1"))
			},
			want:    map[string]string{"a": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:db"}, "theirs": {"before-first-apply"}},
		},
		"Empty": {
			reason:  "A Secret without data is as good as any.",
			before:  func(e *env, _ object) { e.posted("db", "kubectl-create") },
			want:    map[string]string{"a": "1"},
			holders: map[string][]string{"a": {"direct-secrets:db"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.before(e, o)
			c := target.Contest{Dead: tc.dead}
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

			// What is left to the tool is left for ever, also when we want nothing any more.
			e.writes(o.wants("db"), c)
			delete(tc.want, "a")
			e.wantData("db", tc.want)
		})
	}
}

// An ownerReference that a backup tool wrote back is ours all the same, since it names us.
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

// A Secret that a backup tool wrote back, mark and label included, is taken over whole.
func TestRestored(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := owned(o.wants("db", "a", "1", "b", "1"), o.reference(true))
	was := e.writes(d)
	e.deletes(was)
	was.ResourceVersion, was.UID, was.ManagedFields = "", "", nil
	e.create(was)

	e.writes(d)
	if got := observe(e.secret("db"), "db"); !got.Intact {
		t.Error("not intact")
	}
	s := e.writes(o.wants("db", "a", "1"))
	e.wantData("db", map[string]string{"a": "1"})
	if len(s.OwnerReferences) != 0 {
		t.Errorf("owners: %v", s.OwnerReferences)
	}
}

func TestLivingKeysAreNotTaken(t *testing.T) {
	older := everybodyLives()
	younger := target.Contest{Dead: func(string) bool { return false }, Older: func(string) bool { return false }}
	cases := map[string]struct {
		reason  string
		before  func(e *env, o object)
		contest target.Contest
		yielded []string
		want    map[string]string
		holders map[string][]string
	}{
		"EqualOlder": {
			reason:  "Apply reports no conflict on equal values; the later object lets go.",
			before:  func(e *env, _ object) { e.writes(e.object("other").wants("db", "a", "1", "theirs", "x")) },
			contest: older,
			yielded: []string{"a"},
			want:    map[string]string{"a": "1", "b": "1", "theirs": "x"},
			holders: map[string][]string{"a": {"direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
		"OtherValueOlder": {
			reason:  "A key with another value stays with its present holder.",
			before:  func(e *env, _ object) { e.writes(e.object("other").wants("db", "a", "theirs", "b", "theirs")) },
			contest: older,
			yielded: []string{"a", "b"},
			want:    map[string]string{"a": "theirs", "b": "theirs"},
			holders: map[string][]string{"a": {"direct-secrets:other"}, "b": {"direct-secrets:other"}},
		},
		"EqualYounger": {
			reason:  "A present holder keeps a key also against an older object.",
			before:  func(e *env, _ object) { e.writes(e.object("other").wants("db", "a", "1")) },
			contest: younger,
			yielded: []string{"a"},
			want:    map[string]string{"a": "1", "b": "1"},
			holders: map[string][]string{"a": {"direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
		"BothHoldWeAreLater": {
			reason: "Both applied the equal value at once: the later of the two lets go.",
			before: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1", "b", "1"))
				e.mustApply("db", "direct-secrets:other", data("a", "1"))
			},
			contest: older,
			yielded: []string{"a"},
			want:    map[string]string{"a": "1", "b": "1"},
			holders: map[string][]string{"a": {"direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
		"BothHoldWeAreFirst": {
			reason: "And the earlier one keeps it.",
			before: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1", "b", "1"))
				e.mustApply("db", "direct-secrets:other", data("a", "1"))
			},
			contest: younger,
			want:    map[string]string{"a": "1", "b": "1"},
			holders: map[string][]string{"a": {"direct-secrets:db", "direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
		"NotKnownToBeDead": {
			reason:  "Without proof that it is dead an ExternalSecret counts as living.",
			before:  func(e *env, _ object) { e.writes(e.object("other").wants("db", "a", "1")) },
			yielded: []string{"a"},
			want:    map[string]string{"a": "1", "b": "1"},
			holders: map[string][]string{"a": {"direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
		"OneDeadOneLiving": {
			reason: "One living holder is enough.",
			before: func(e *env, _ object) {
				e.writes(e.object("other").wants("db", "a", "1"))
				e.mustApply("db", "direct-secrets:dead", data("a", "1"))
			},
			contest: target.Contest{Dead: only("direct-secrets:dead")},
			yielded: []string{"a"},
			want:    map[string]string{"a": "1", "b": "1"},
			holders: map[string][]string{"a": {"direct-secrets:dead", "direct-secrets:other"}, "b": {"direct-secrets:db"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.before(e, o)
			s, yielded, err := e.w.Apply(e.ctx, e.secret("db"), o.wants("db", "a", "1", "b", "1"), tc.contest)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.yielded, yielded); diff != "" {
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
				t.Errorf("\n%s\nthe mark does not describe what is left to us", tc.reason)
			}
		})
	}
}

// A key that was freed is had for the asking, and the two never oscillate.
func TestFreedKey(t *testing.T) {
	e := newEnv(t)
	first, later := e.object("first"), e.object("later")
	e.writes(first.wants("db", "a", "1", "b", "1"))
	want := []string{"a"}
	for range 3 {
		_, yielded, err := e.w.Apply(e.ctx, e.secret("db"), later.wants("db", "a", "2"), everybodyLives())
		if diff := cmp.Diff(want, yielded); diff != "" || err != nil {
			t.Fatalf("yielded: -want, +got:\n%s\nerror: %v", diff, err)
		}
		e.writes(first.wants("db", "a", "1", "b", "1"), target.Contest{})
	}
	e.writes(first.wants("db", "b", "1"))
	e.writes(later.wants("db", "a", "2"), everybodyLives())
	e.wantData("db", map[string]string{"a": "2", "b": "1"})
}
