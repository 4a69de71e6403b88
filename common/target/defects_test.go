package target_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/target"
)

// These tests fail: each skips itself with what is wrong, until that is put right.

func TestReleaseKeepsWhatNobodyHolds(t *testing.T) {
	t.Skip("fold finds a holder for the data and owners of others that no entry names, but not for their labels and annotations, which go with ours")
	cases := map[string]struct {
		reason string
		before func(e *env, o object)
	}{
		"Adopted": {"What a tool made before managedFields were reset.", func(e *env, _ object) {
			e.create(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: e.ns, Name: "db", Labels: map[string]string{"theirs": "x"}, Annotations: map[string]string{"theirs": "x"},
				},
				Data: bytesOf("theirs", "x"),
			})
		}},
		"Ours": {"What a person added to our Secret before that.", func(e *env, o object) {
			e.writes(o.wants("db", "a", "1"))
			e.updates("db", "kubectl", func(s *corev1.Secret) {
				setData("theirs", "x")(s)
				s.Labels["theirs"], s.Annotations["theirs"] = "x", "x"
			})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.before(e, o)
			e.resetsManagedFields("db")
			e.writes(o.wants("db", "a", "1"))
			e.releases(o.wants("db"))

			want := map[string]string{"theirs": "x"}
			s := e.wantData("db", want)
			if diff := cmp.Diff(want, s.Labels); diff != "" {
				t.Errorf("\n%s\nlabels: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(want, s.Annotations); diff != "" {
				t.Errorf("\n%s\nannotations: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A type that we set once and do not care for any more stays.
func TestTypeWithdrawn(t *testing.T) {
	t.Skip("an apply without the type that we alone hold removes it; the API server then takes Opaque, and refuses the change")
	const custom = "example.com/custom"
	writes := map[string]func(e *env, d target.Desired) error{
		"Apply": func(e *env, d target.Desired) error {
			_, _, err := e.w.Apply(e.ctx, e.secret("db"), d, target.Contest{})
			return err
		},
		"Own": func(e *env, d target.Desired) error {
			_, err := e.w.Own(e.ctx, e.secret("db"), d, target.Contest{})
			return err
		},
		"Release": func(e *env, d target.Desired) error { return e.w.Release(e.ctx, e.secret("db"), d) },
	}
	for verb, write := range writes {
		for _, applied := range []bool{false, true} {
			t.Run(verb+map[bool]string{false: "AfterCreate", true: "AfterApply"}[applied], func(t *testing.T) {
				e := newEnv(t)
				d := e.object("db").wants("db", "a", "1")
				d.Type = custom
				d.Seal()
				e.writes(d)
				if applied {
					e.writes(d)
				}
				d.Type = ""
				d.Seal()
				if err := write(e, d); err != nil {
					t.Errorf("%s: %v", verb, err)
				}
				if s := e.secret("db"); s.Type != custom {
					t.Errorf("type after %s: got %q, want %q", verb, s.Type, custom)
				}
			})
		}
	}
}

// The uid of an owner decides whether it is gone, not whether another object has its name now.
func TestGoneOwnerWhoseNameLives(t *testing.T) {
	t.Skip("takeOver leaves the whole entry of a living field manager, also the reference to an owner that is gone; the API server then sees two controllers")
	for verb, owner := range map[string]bool{"Owned": true, "NotOwned": false} {
		t.Run(verb, func(t *testing.T) {
			e := newEnv(t)
			o, gone := e.object("db"), object{e: e, name: "other", uid: newUID()}
			e.writes(owned(gone.wants("db", "other", "x"), gone.externalSecret()))
			c := without(gone)
			c.Dead = nil // Another object of that name writes the Secret now.

			d, want := o.wants("db", "a", "1"), []string(nil)
			if owner {
				d, want = owned(d, o.reference(true)), []string{"db"}
			}
			s := e.writes(d, c)
			if diff := cmp.Diff(want, ownersOf(s)); diff != "" {
				t.Errorf("owners: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff([]string{"direct-secrets:other"}, holders(s, "other")); diff != "" {
				t.Errorf("HoldersOf(other): -want, +got:\n%s", diff)
			}
		})
	}
}

// A mark that a backup tool wrote back is ours all the same.
func TestReleaseOfARestoredSecret(t *testing.T) {
	t.Skip("fold takes over equal keys and labels, but not the mark, if it is equal, and so a Release leaves it")
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
