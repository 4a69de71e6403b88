package target_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// releases removes what an object wrote. The wanted fields in d have no effect.
func (e *env) releases(d target.Desired) {
	e.Helper()
	if err := e.w.Release(e.ctx, e.secret(d.Name), d); err != nil {
		e.Fatalf("Release: %v", err)
	}
}

func TestRelease(t *testing.T) {
	const storeLabel = "stores.direct-secrets.io/x"
	managed := target.ManagedLabel(module)
	// theirs is what others wrote and is left.
	type theirs struct {
		data                map[string]string
		labels, annotations map[string]string
		owner               string
	}
	cases := map[string]struct {
		reason string
		others func(e *env, o object)
		want   theirs
	}{
		"Alone": {
			reason: "Everything of ours is removed.",
			others: func(*env, object) {},
		},
		"Updated": {
			reason: "Additions of a user stay.",
			others: func(e *env, _ object) {
				other := e.object("other")
				e.updates("db", "kubectl", func(s *corev1.Secret) {
					setData("theirs", "x")(s)
					s.Labels["theirs"], s.Annotations["theirs"] = "x", "x"
					s.OwnerReferences = append(s.OwnerReferences, other.reference(false))
				})
			},
			want: theirs{
				data: map[string]string{"theirs": "x"}, labels: map[string]string{"theirs": "x"},
				annotations: map[string]string{"theirs": "x"}, owner: "other",
			},
		},
		"StringData": {
			reason: "Fields without an entry stay.",
			others: func(e *env, _ object) {
				e.mustApply("db", "flux", map[string]any{"stringData": map[string]string{"theirs": "x"}})
			},
			want: theirs{data: map[string]string{"theirs": "x"}},
		},
		"Changed": {
			reason: "A key of ours that a user changed is theirs now.",
			others: func(e *env, _ object) {
				e.updates("db", "kubectl", func(s *corev1.Secret) { setData("a", "x")(s); s.Labels[managed] = "no" })
			},
			want: theirs{data: map[string]string{"a": "x"}, labels: map[string]string{managed: "no"}},
		},
		"CoHeldByATool": {
			reason: "A tool keeps a key that it held together with us.",
			others: func(e *env, _ object) { e.mustApply("db", "flux", data("a", "1")) },
			want:   theirs{data: map[string]string{"a": "1"}},
		},
		"CoHeldByAnother": {
			reason: "A key that another existing ExternalSecret also holds stays, with its label and mark.",
			others: func(e *env, _ object) {
				e.mustApply("db", "direct-secrets:x", map[string]any{
					"data": bytesOf("a", "1", "x", "1"),
					"metadata": map[string]any{
						"labels":      map[string]string{managed: "true"},
						"annotations": map[string]string{target.MarkKey("x"): `{"name":"x"}`},
					},
				})
			},
			want: theirs{
				data: map[string]string{"a": "1", "x": "1"}, labels: map[string]string{managed: "true"},
				annotations: map[string]string{target.MarkKey("x"): `{"name":"x"}`},
			},
		},
		"ReferenceHeldByATool": {
			reason: "A reference to us is removed, whoever wrote it.",
			others: func(e *env, o object) {
				e.mustApply("db", "restore", map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{o.reference(true)}}})
			},
		},
		"ManagedFieldsReset": {
			reason: "If the owner of the fields is unknown, everything stays except the reference to us.",
			others: func(e *env, _ object) {
				e.updates("db", "kubectl", func(s *corev1.Secret) { delete(s.Annotations, target.MarkKey("db")) })
				e.resetsManagedFields("db")
			},
			want: theirs{
				data:   map[string]string{"a": "1", "b": "1"},
				labels: map[string]string{managed: "true", storeLabel: "true"},
			},
		},
	}
	for name, tc := range cases {
		for _, applied := range []bool{false, true} {
			suffix := map[bool]string{false: "AfterCreate", true: "AfterApply"}[applied]
			t.Run(name+suffix, func(t *testing.T) {
				e := newEnv(t)
				o := e.object("db")
				d := owned(o.wants("db", "a", "1", "b", "1"), o.reference(true))
				d.Labels[storeLabel] = "true"
				d.Seal()
				e.writes(d)
				if applied {
					e.writes(d)
				}
				tc.others(e, o)
				e.releases(d)

				s := e.secret("db")
				got := theirs{data: stringsOf(s.Data), labels: s.Labels, annotations: s.Annotations}
				for _, r := range s.OwnerReferences {
					got.owner += r.Name
				}
				if diff := cmp.Diff(orEmpty(tc.want.data), orEmpty(got.data)); diff != "" {
					t.Errorf("\n%s\ndata: -want, +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(orEmpty(tc.want.labels), orEmpty(got.labels)); diff != "" {
					t.Errorf("\n%s\nlabels: -want, +got:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(orEmpty(tc.want.annotations), orEmpty(got.annotations)); diff != "" {
					t.Errorf("\n%s\nannotations: -want, +got:\n%s", tc.reason, diff)
				}
				if got.owner != tc.want.owner {
					t.Errorf("\n%s\nowner: got %q, want %q", tc.reason, got.owner, tc.want.owner)
				}
				if diff := cmp.Diff(target.Fields{}, target.FieldsOf(s.ManagedFields, o.manager())); diff != "" {
					t.Errorf("\n%s\nfields that we still hold: -want, +got:\n%s", tc.reason, diff)
				}

				// Another Release changes nothing.
				e.releases(d)
				if diff := cmp.Diff(plainOf(s), plainOf(e.secret("db"))); diff != "" {
					t.Errorf("\n%s\nanother Release: -before, +after:\n%s", tc.reason, diff)
				}
			})
		}
	}
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}

// TestDelete checks that a Secret is deleted only if it is unchanged since it was read.
func TestDelete(t *testing.T) {
	none := func(err error) bool { return err == nil }
	cases := map[string]struct {
		reason string
		move   func(e *env)
		is     func(error) bool
	}{
		"AsItWas": {"An unchanged Secret is deleted.", func(*env) {}, none},
		"Changed": {"A key added after the read is kept.", func(e *env) { e.updates("db", "kubectl", setData("theirs", "x")) }, kerrors.IsConflict},
		"ChangedOnlyALabel": {
			"Any other change is kept.",
			func(e *env) { e.updates("db", "kubectl", func(s *corev1.Secret) { s.Labels["theirs"] = "x" }) }, kerrors.IsConflict,
		},
		"ChangedOnlyTheHolder": {
			"A changed field manager counts as a change.",
			func(e *env) { e.mustApply("db", "flux", data("a", "1")) }, kerrors.IsConflict,
		},
		"Deleted":   {"A deleted Secret is not found.", func(e *env) { e.deletes(e.secret("db")) }, kerrors.IsNotFound},
		"Recreated": {"Another Secret with that name is unchanged.", func(e *env) { e.deletes(e.secret("db")); e.posted("db", "kubectl", "a", "1") }, kerrors.IsConflict},
		"Terminating": {
			"A Secret that is already being deleted is unchanged.",
			func(e *env) { e.deletes(e.secret("db")); e.terminating("db") }, kerrors.IsConflict,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			live := e.writes(e.object("db").wants("db", "a", "1"))
			tc.move(e)
			was := e.secret("db")

			err := e.w.Delete(e.ctx, live)
			if err == nil {
				was = nil
			}
			if !tc.is(err) {
				t.Errorf("\n%s\nDelete(...): got error %v", tc.reason, err)
			}
			e.wantUntouched("db", was)
		})
	}
}

// TestDeleteGuards checks that uid and resourceVersion each guard alone.
func TestDeleteGuards(t *testing.T) {
	for name, forge := range map[string]func(live *corev1.Secret){
		"UID":             func(live *corev1.Secret) { live.UID = newUID() },
		"ResourceVersion": func(live *corev1.Secret) { live.ResourceVersion = "1" },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			was := e.writes(e.object("db").wants("db", "a", "1"))
			live := was.DeepCopy()
			forge(live)
			if err := e.w.Delete(e.ctx, live); !kerrors.IsConflict(err) {
				t.Errorf("Delete(...): got error %v, want a Conflict", err)
			}
			e.wantUntouched("db", was)
		})
	}
}

func TestReleaseOfARestoredSecret(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := owned(o.wants("db", "a", "1"), o.reference(true))
	was := e.writes(d)
	e.deletes(was)
	was.ResourceVersion, was.UID, was.ManagedFields = "", "", nil
	e.create(was)

	e.writes(d)
	e.releases(d)
	s := e.wantData("db", map[string]string{})
	if diff := cmp.Diff(map[string]string{}, orEmpty(s.Annotations)); diff != "" {
		t.Errorf("annotations: -want, +got:\n%s", diff)
	}
}
