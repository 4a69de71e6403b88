package target_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// newUID returns the uid of an object that is gone.
func newUID() types.UID { return uuid.NewUUID() }

// externalSecret returns the reference that an ExternalSecret sets, as controller. The control plane
// does not serve the Kind, so the collector waits for it and deletes nothing.
func (o object) externalSecret() metav1.OwnerReference {
	r := o.reference(true)
	r.APIVersion, r.Kind = "direct-secrets.io/v1alpha1", "ExternalSecret"
	return r
}

// without returns the contest in which one object is gone, and with it what it held.
func without(gone object) target.Contest {
	return target.Contest{
		Dead:  only(gone.manager()),
		Older: func(string) bool { return true },
		Gone:  func(r metav1.OwnerReference) bool { return r.UID == gone.uid },
	}
}

// The Secret of an ExternalSecret that is gone becomes that of another: the reference of the one goes
// in the very write that sets that of the other, or the API server would see two controllers.
func TestAdopt(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before makes the Secret; other exists and owns nothing yet.
		before func(e *env, dead, other object)
		// dead is the name of the object that is gone.
		dead string
		// want are the values of what is not ours in the end, and holders who holds them.
		want    map[string]string
		holders map[string][]string
		// others are the owners beside us.
		others []string
	}{
		"Created": {
			reason: "As the dead one posted it.",
			before: func(e *env, dead, _ object) {
				e.writes(owned(dead.wants("db", "a", "1", "dead", "x"), dead.externalSecret()))
			},
			dead:    "dead",
			want:    map[string]string{"dead": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}},
		},
		"Applied": {
			reason: "As it applied it.",
			before: func(e *env, dead, _ object) {
				e.writes(dead.wants("db", "a", "0"))
				e.writes(owned(dead.wants("db", "a", "1", "dead", "x"), dead.externalSecret()))
			},
			dead:    "dead",
			want:    map[string]string{"dead": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}},
		},
		"OtherValue": {
			reason: "Whatever its values were.",
			before: func(e *env, dead, _ object) {
				e.writes(owned(dead.wants("db", "a", "0", "b", "0", "dead", "x"), dead.externalSecret()))
			},
			dead:    "dead",
			want:    map[string]string{"dead": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}},
		},
		"SameName": {
			reason: "What the object of our name before us held is ours, and goes if we do not want it.",
			before: func(e *env, dead, _ object) {
				e.writes(owned(dead.wants("db", "a", "1", "dead", "x"), dead.externalSecret()))
			},
			dead: "db",
		},
		"SameNameApplied": {
			reason: "However it wrote it.",
			before: func(e *env, dead, _ object) {
				e.writes(dead.wants("db", "a", "0"))
				e.writes(owned(dead.wants("db", "a", "1", "dead", "x"), dead.externalSecret()))
			},
			dead: "db",
		},
		"Restored": {
			reason: "A reference that a backup tool wrote back counts no more.",
			before: func(e *env, dead, _ object) {
				e.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
					Namespace: e.ns, Name: "db", OwnerReferences: []metav1.OwnerReference{dead.externalSecret()},
				}, Data: bytesOf("a", "1", "theirs", "x")})
			},
			dead: "dead",
			want: map[string]string{"theirs": "x"},
		},
		"ManagedFieldsReset": {
			reason: "Nor does one that nobody is known to have written.",
			before: func(e *env, dead, _ object) {
				e.writes(owned(dead.wants("db", "a", "1", "dead", "x"), dead.externalSecret()))
				e.resetsManagedFields("db")
			},
			dead: "dead",
			want: map[string]string{"dead": "x"},
		},
		"ManagedFieldsResetThenUpdated": {
			reason: "Also where somebody wrote after that.",
			before: func(e *env, dead, _ object) {
				e.writes(owned(dead.wants("db", "a", "1", "dead", "x"), dead.externalSecret()))
				e.resetsManagedFields("db")
				e.updates("db", "kubectl", setData("theirs", "x"))
			},
			dead:    "dead",
			want:    map[string]string{"dead": "x", "theirs": "x"},
			holders: map[string][]string{"theirs": {"before-first-apply"}},
		},
		"OtherOwner": {
			reason: "The owners that live stay.",
			before: func(e *env, dead, other object) {
				e.writes(owned(dead.wants("db", "a", "1", "dead", "x"), dead.externalSecret()))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.OwnerReferences = append(s.OwnerReferences, other.reference(false)) })
			},
			dead:    "dead",
			want:    map[string]string{"dead": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}},
			others:  []string{"other"},
		},
		"LivingExternalSecret": {
			reason: "So does an ExternalSecret that lives, with its keys.",
			before: func(e *env, dead, other object) {
				e.writes(owned(dead.wants("db", "a", "1", "dead", "x"), dead.externalSecret()))
				r := other.externalSecret()
				r.Controller = new(false)
				e.writes(owned(other.wants("db", "other", "x"), r))
			},
			dead:    "dead",
			want:    map[string]string{"dead": "x", "other": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}, "other": {"direct-secrets:other"}},
			others:  []string{"other"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o, other, dead := e.object("db"), e.object("other"), object{e: e, name: tc.dead, uid: newUID()}
			tc.before(e, dead, other)
			c := without(dead)
			if tc.dead == o.name {
				c.Dead = nil
			}
			s := e.writes(owned(o.wants("db", "a", "1", "b", "1"), o.reference(true)), c)
			e.wantUntouched("db", s)

			if diff := cmp.Diff(append(slices.Clone(tc.others), "db"), ownersOf(s)); diff != "" {
				t.Errorf("\n%s\nowners: -want, +got:\n%s", tc.reason, diff)
			}
			if r := metav1.GetControllerOf(s); r == nil || r.UID != o.uid {
				t.Errorf("\n%s\ncontroller: %v", tc.reason, r)
			}
			want := orEmpty(tc.want)
			want["a"], want["b"] = "1", "1"
			e.wantData("db", want)
			wantHolders := map[string][]string{"a": {o.manager()}, "b": {o.manager()}}
			for k, h := range tc.holders {
				wantHolders[k] = h
			}
			for k, want := range wantHolders {
				if diff := cmp.Diff(want, holders(s, k)); diff != "" {
					t.Errorf("\n%s\nHoldersOf(%s): -want, +got:\n%s", tc.reason, k, diff)
				}
			}
			if !observe(s, "db").Intact {
				t.Errorf("\n%s\nnot intact", tc.reason)
			}

			// What became ours goes when we drop it, and nothing else does.
			e.writes(o.wants("db"), c)
			s = e.wantData("db", orEmpty(tc.want))
			if diff := cmp.Diff(tc.others, ownersOf(s)); diff != "" {
				t.Errorf("\n%s\nowners in the end: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// ownersOf returns the names of the owners.
func ownersOf(s *corev1.Secret) []string {
	var names []string
	for _, r := range s.OwnerReferences {
		names = append(names, r.Name)
	}
	return names
}

// Which references an Apply and an Own drop, whether they set one or not.
func TestGoneOwners(t *testing.T) {
	gone := newUID()
	ref := func(change func(*metav1.OwnerReference)) metav1.OwnerReference {
		r := object{name: "gone", uid: gone}.externalSecret()
		change(&r)
		return r
	}
	all := func(metav1.OwnerReference) bool { return true }
	cases := map[string]struct {
		reason string
		ref    metav1.OwnerReference
		gone   func(metav1.OwnerReference) bool
		goes   bool
	}{
		"Gone":          {"An ExternalSecret that is gone owns nothing.", ref(func(*metav1.OwnerReference) {}), all, true},
		"NotController": {"Whether it controlled or not.", ref(func(r *metav1.OwnerReference) { r.Controller = nil }), all, true},
		"AnotherVersion": {
			"In whatever version it was named.",
			ref(func(r *metav1.OwnerReference) { r.APIVersion = "direct-secrets.io/v2" }), all, true,
		},
		"Living":       {"One that lives keeps its reference.", ref(func(*metav1.OwnerReference) {}), func(metav1.OwnerReference) bool { return false }, false},
		"NotKnown":     {"One of which nothing is known lives.", ref(func(*metav1.OwnerReference) {}), nil, false},
		"AnotherKind":  {"Of other Kinds nobody is asked.", ref(func(r *metav1.OwnerReference) { r.Kind = "PushSecret" }), all, false},
		"AnotherGroup": {"Nor of other groups.", ref(func(r *metav1.OwnerReference) { r.APIVersion = "external-secrets.io/v1" }), all, false},
	}
	for name, tc := range cases {
		for _, verb := range []string{"Apply", "Own"} {
			for _, owner := range []bool{true, false} {
				if owner && !tc.goes && tc.ref.Controller != nil {
					continue // The API server refuses a second controller.
				}
				t.Run(name+verb+map[bool]string{true: "Owned", false: "NotOwned"}[owner], func(t *testing.T) {
					e := newEnv(t)
					o := e.object("db")
					d := o.wants("db", "a", "1")
					e.writes(d)
					e.updates("db", "kubectl", func(s *corev1.Secret) {
						setData("theirs", "x")(s)
						s.OwnerReferences = []metav1.OwnerReference{tc.ref}
					})
					var want []string
					if !tc.goes {
						want = append(want, "gone")
					}
					if owner {
						d = owned(d, o.reference(true))
						want = append(want, "db")
					}
					if c := (target.Contest{Gone: tc.gone}); verb == "Apply" {
						e.writes(d, c)
					} else {
						e.owns(d, c)
					}
					s := e.wantData("db", map[string]string{"a": "1", "theirs": "x"})
					if diff := cmp.Diff(want, ownersOf(s)); diff != "" {
						t.Errorf("\n%s\nowners: -want, +got:\n%s", tc.reason, diff)
					}
				})
			}
		}
	}
}

func TestGoneOwnerWhoseNameLives(t *testing.T) {
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
