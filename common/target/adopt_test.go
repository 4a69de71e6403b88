package target_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/direct-secrets/direct-secrets/common/target"
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

// A Secret that others made has the type that they chose, if ours is not asked for.
func TestAnyType(t *testing.T) {
	const basic = corev1.SecretTypeBasicAuth
	cases := map[string]struct {
		reason string
		before func(e *env)
	}{
		"Posted": {"A tool posted it.", func(e *env) {
			e.create(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "db"}, Type: basic, Data: bytesOf("username", "x"),
			})
		}},
		"Applied": {"Or applied it.", func(e *env) {
			e.mustApply("db", "flux", map[string]any{"type": basic, "data": bytesOf("username", "x")})
		}},
		"ManagedFieldsReset": {"Nobody knows who did.", func(e *env) {
			e.mustApply("db", "flux", map[string]any{"type": basic, "data": bytesOf("username", "x")})
			e.resetsManagedFields("db")
		}},
		"ManagedFieldsResetThenApplied": {"And the entries that there are tell of other things.", func(e *env) {
			e.mustApply("db", "flux", map[string]any{"type": basic, "data": bytesOf("username", "x")})
			e.resetsManagedFields("db")
			e.mustApply("db", "flux", data("username", "x"))
		}},
		"AnotherExternalSecret": {"Another ExternalSecret made it.", func(e *env) {
			d := e.object("x").wants("db", "username", "x")
			d.Type = basic
			d.Seal()
			e.writes(d)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			wants := func(pairs ...string) target.Desired {
				d := o.wants("db", pairs...)
				d.Type = ""
				d.Seal()
				return d
			}
			tc.before(e)
			for _, step := range []struct {
				what string
				do   func()
				want map[string]string
			}{
				{"Apply", func() { e.writes(wants("a", "1")) }, map[string]string{"username": "x", "a": "1"}},
				{"another Apply", func() { e.writes(wants("a", "2", "b", "1")) }, map[string]string{"username": "x", "a": "2", "b": "1"}},
				{"Own", func() { e.owns(owned(wants(), o.reference(true))) }, map[string]string{"username": "x", "a": "2", "b": "1"}},
				{"Apply of fewer keys", func() { e.writes(wants("b", "1")) }, map[string]string{"username": "x", "b": "1"}},
				{"Release", func() { e.releases(wants()) }, map[string]string{"username": "x"}},
			} {
				step.do()
				s := e.wantData("db", step.want)
				if s.Type != basic {
					t.Errorf("\n%s\ntype after %s: got %q, want %q", tc.reason, step.what, s.Type, basic)
				}
				for _, entry := range s.ManagedFields {
					if entry.Manager == o.manager() && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:type"`) {
						t.Errorf("\n%s\nwe hold the type after %s", tc.reason, step.what)
					}
				}
				if step.what != "Release" && !observe(s, "db").Intact {
					t.Errorf("\n%s\nnot intact after %s", tc.reason, step.what)
				}
			}
		})
	}
}

// Without a type a Secret that we make is Opaque, and stays it.
func TestAnyTypeCreated(t *testing.T) {
	e := newEnv(t)
	o := e.object("db")
	d := o.wants("db", "a", "1")
	d.Type = ""
	d.Seal()
	for _, write := range []func(target.Desired) *corev1.Secret{
		func(d target.Desired) *corev1.Secret { return e.writes(d) },
		func(d target.Desired) *corev1.Secret { return e.writes(d) },
		func(d target.Desired) *corev1.Secret { return e.owns(owned(d, o.reference(true))) },
	} {
		if s := write(d); s.Type != corev1.SecretTypeOpaque || !observe(s, "db").Intact {
			t.Errorf("type is %q", s.Type)
		}
	}
}

// Who made a Secret is known as long as it bears the mark of that name.
func TestCreated(t *testing.T) {
	type step struct {
		what string
		do   func(e *env, o, next object)
	}
	steps := []step{
		{"Apply", func(e *env, o, _ object) { e.writes(o.wants("db", "a", "2")) }},
		{"Own", func(e *env, o, _ object) { e.owns(owned(o.wants("db"), o.reference(true))) }},
		{"Own again", func(e *env, o, _ object) { e.owns(o.wants("db")) }},
		{"Apply of the same", func(e *env, o, _ object) { e.writes(o.wants("db", "a", "2")) }},
		{"Apply that yields a key", func(e *env, o, _ object) {
			e.mustApply("db", "direct-secrets:other", data("b", "1"))
			if _, yielded, err := e.w.Apply(e.ctx, e.secret("db"), o.wants("db", "a", "2", "b", "2"), everybodyLives()); err != nil || len(yielded) != 1 {
				e.Fatalf("Apply: yielded %q, error %v", yielded, err)
			}
		}},
		{"Apply of a new uid", func(e *env, _, next object) { e.writes(next.wants("db", "a", "3")) }},
		{"Own of the former uid", func(e *env, o, _ object) { e.owns(o.wants("db")) }},
		{"Own of a new uid", func(e *env, _, next object) {
			// The collector looks for an object of the very name and uid.
			e.owns(owned(next.wants("db"), object{name: "next", uid: next.uid}.reference(true)))
		}},
		{"Apply without keys", func(e *env, _, next object) { e.writes(next.wants("db")) }},
	}
	cases := map[string]struct {
		reason string
		before func(e *env, o object)
		want   bool
	}{
		"Created": {"What we posted is ours.", func(e *env, o object) { e.writes(o.wants("db", "a", "1")) }, true},
		"Adopted": {
			"What we adopted is not, whatever the caller says.",
			func(e *env, o object) {
				e.posted("db", "kubectl", "a", "1")
				e.writes(created(o.wants("db", "a", "1")))
			}, false,
		},
		"CreatedByAnother": {
			"Nor is what another ExternalSecret posted.",
			func(e *env, o object) {
				e.writes(e.object("other").wants("db", "x", "1"))
				e.writes(o.wants("db", "a", "1"))
			}, false,
		},
		"MarkRemoved": {
			"Nor what does not bear our mark any more.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Annotations = nil })
				e.writes(o.wants("db", "a", "1"))
			}, false,
		},
		"MarkRemovedThenOwned": {
			"Whichever write comes first.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Annotations = nil })
				e.owns(o.wants("db"))
			}, false,
		},
		"MarkRemovedButKnown": {
			"Unless the caller knows that it made this very Secret.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Annotations = nil })
				e.writes(created(o.wants("db", "a", "1")))
			}, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			next := object{e: e, name: "db", uid: e.object("next").uid}
			tc.before(e, o)
			for _, s := range append([]step{{"the first write", func(*env, object, object) {}}}, steps...) {
				s.do(e, o, next)
				if got := e.mark("db").Created; got != tc.want {
					t.Errorf("\n%s\nCreated after %s: got %v, want %v", tc.reason, s.what, got, tc.want)
				}
			}
			// The other's mark says nothing of us, and ours nothing of it.
			if other, ok := target.Marks(e.secret("db").Annotations)["other"]; ok && !other.Created {
				t.Errorf("\n%s\nthe mark of the other: %+v", tc.reason, other)
			}
		})
	}
}

// What Yield says before is what Apply does, and it changes nothing that it was given.
func TestYield(t *testing.T) {
	held := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Apply", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const a, ab = `{"f:data":{"f:a":{}}}`, `{"f:data":{"f:a":{},"f:b":{}}}`
	yes := func(string) bool { return true }
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		contest target.Contest
		want    []string
	}{
		"Nobody":       {reason: "Keys of nobody are to be had."},
		"Ours":         {reason: "What we hold is ours.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab)}},
		"Tool":         {reason: "Keys of a tool are taken over.", entries: []metav1.ManagedFieldsEntry{held("flux", ab)}},
		"Living":       {reason: "Those of another ExternalSecret are not.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", ab)}, want: []string{"a", "b"}},
		"SomeOfLiving": {reason: "Each key for itself.", entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", a)}, want: []string{"a"}},
		"Dead": {
			reason:  "Unless it is gone.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", ab)}, contest: target.Contest{Dead: yes},
		},
		"SharedWithYounger": {
			reason:  "What both hold stays with the older.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)},
		},
		"SharedWithOlder": {
			reason:  "And the later lets go.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)}, contest: target.Contest{Older: yes},
			want: []string{"a"},
		},
		"SharedWithDeadOlder": {
			reason:  "Not to one that is gone.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:db", ab), held("direct-secrets:x", a)}, contest: target.Contest{Older: yes, Dead: yes},
		},
		"OneOfTwo": {
			reason:  "One living holder is enough.",
			entries: []metav1.ManagedFieldsEntry{held("direct-secrets:x", a), held("direct-secrets:y", a)}, contest: target.Contest{Dead: only("direct-secrets:x")},
			want: []string{"a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wants := func(pairs ...string) target.Desired {
				return immutable(object{e: &env{ns: "ns"}, name: "db", uid: "1"}.wants("db", pairs...))
			}
			d := wants("a", "1", "b", "2")
			got, yielded := d.Yield(tc.entries, tc.contest)
			if diff := cmp.Diff(tc.want, yielded); diff != "" {
				t.Errorf("\n%s\nyielded: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(wants("a", "1", "b", "2"), d); diff != "" {
				t.Errorf("\n%s\nwhat was asked: -before, +after:\n%s", tc.reason, diff)
			}
			var left []string
			for _, pair := range [][2]string{{"a", "1"}, {"b", "2"}} {
				if !slices.Contains(tc.want, pair[0]) {
					left = append(left, pair[:]...)
				}
			}
			if diff := cmp.Diff(wants(left...), got); diff != "" {
				t.Errorf("\n%s\nwhat is left, sealed anew: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
