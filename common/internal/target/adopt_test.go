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

// newUID returns the uid of an object that does not exist.
func newUID() types.UID { return uuid.NewUUID() }

// externalSecret returns the controller reference that an ExternalSecret sets. The control plane does not serve the
// Kind, so the garbage collector waits for it and deletes nothing.
func (o object) externalSecret() metav1.OwnerReference {
	r := o.reference(true)
	r.APIVersion, r.Kind = "direct-secrets.io/v1alpha1", "ExternalSecret"
	return r
}

// without returns answers by which one object is deleted. Its keys and references can be taken over.
func without(deleted object) target.Others {
	return target.Others{
		ManagerDeleted: only(deleted.manager()),
		Older:          func(string) bool { return true },
		OwnerDeleted:   func(r metav1.OwnerReference) bool { return r.UID == deleted.uid },
	}
}

// TestAdopt lets an object adopt the Secret of a deleted ExternalSecret. The write that sets the new controller
// reference must remove the old one, because the API server rejects two controllers.
func TestAdopt(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before creates the Secret; other exists and owns nothing yet.
		before func(e *env, deleted, other object)
		// deleted is the name of the deleted object.
		deleted string
		// want are the values of keys that are not ours afterwards, and holders their field managers.
		want    map[string]string
		holders map[string][]string
		// others are the other owners.
		others []string
	}{
		"Created": {
			reason: "The Secret is as the deleted object posted it.",
			before: func(e *env, deleted, _ object) {
				e.writes(owned(deleted.wants("db", "a", "1", "dead", "x"), deleted.externalSecret()))
			},
			deleted: "dead",
			want:    map[string]string{"dead": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}},
		},
		"Applied": {
			reason: "The Secret is as the deleted object applied it.",
			before: func(e *env, deleted, _ object) {
				e.writes(deleted.wants("db", "a", "0"))
				e.writes(owned(deleted.wants("db", "a", "1", "dead", "x"), deleted.externalSecret()))
			},
			deleted: "dead",
			want:    map[string]string{"dead": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}},
		},
		"OtherValue": {
			reason: "The values differ from ours.",
			before: func(e *env, deleted, _ object) {
				e.writes(owned(deleted.wants("db", "a", "0", "b", "0", "dead", "x"), deleted.externalSecret()))
			},
			deleted: "dead",
			want:    map[string]string{"dead": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}},
		},
		"SameName": {
			reason: "Keys of the former object with our name are ours, and are removed if they are not wanted.",
			before: func(e *env, deleted, _ object) {
				e.writes(owned(deleted.wants("db", "a", "1", "dead", "x"), deleted.externalSecret()))
			},
			deleted: "db",
		},
		"SameNameApplied": {
			reason: "They are ours however it wrote them.",
			before: func(e *env, deleted, _ object) {
				e.writes(deleted.wants("db", "a", "0"))
				e.writes(owned(deleted.wants("db", "a", "1", "dead", "x"), deleted.externalSecret()))
			},
			deleted: "db",
		},
		"Restored": {
			reason: "A reference restored by a backup tool does not count.",
			before: func(e *env, deleted, _ object) {
				e.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
					Namespace: e.ns, Name: "db", OwnerReferences: []metav1.OwnerReference{deleted.externalSecret()},
				}, Data: bytesOf("a", "1", "theirs", "x")})
			},
			deleted: "dead",
			want:    map[string]string{"theirs": "x"},
		},
		"ManagedFieldsReset": {
			reason: "A reference without a field manager does not count.",
			before: func(e *env, deleted, _ object) {
				e.writes(owned(deleted.wants("db", "a", "1", "dead", "x"), deleted.externalSecret()))
				e.resetsManagedFields("db")
			},
			deleted: "dead",
			want:    map[string]string{"dead": "x"},
		},
		"ManagedFieldsResetThenUpdated": {
			reason: "It does not count if another tool wrote later.",
			before: func(e *env, deleted, _ object) {
				e.writes(owned(deleted.wants("db", "a", "1", "dead", "x"), deleted.externalSecret()))
				e.resetsManagedFields("db")
				e.updates("db", "kubectl", setData("theirs", "x"))
			},
			deleted: "dead",
			want:    map[string]string{"dead": "x", "theirs": "x"},
			holders: map[string][]string{"theirs": {"before-first-apply"}},
		},
		"OtherOwner": {
			reason: "Existing owners stay.",
			before: func(e *env, deleted, other object) {
				e.writes(owned(deleted.wants("db", "a", "1", "dead", "x"), deleted.externalSecret()))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.OwnerReferences = append(s.OwnerReferences, other.reference(false)) })
			},
			deleted: "dead",
			want:    map[string]string{"dead": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}},
			others:  []string{"other"},
		},
		"LivingExternalSecret": {
			reason: "An existing ExternalSecret stays, with its keys.",
			before: func(e *env, deleted, other object) {
				e.writes(owned(deleted.wants("db", "a", "1", "dead", "x"), deleted.externalSecret()))
				r := other.externalSecret()
				r.Controller = new(false)
				e.writes(owned(other.wants("db", "other", "x"), r))
			},
			deleted: "dead",
			want:    map[string]string{"dead": "x", "other": "x"},
			holders: map[string][]string{"dead": {"direct-secrets:dead"}, "other": {"direct-secrets:other"}},
			others:  []string{"other"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o, other, deleted := e.object("db"), e.object("other"), object{e: e, name: tc.deleted, uid: newUID()}
			tc.before(e, deleted, other)
			c := without(deleted)
			if tc.deleted == o.name {
				c.ManagerDeleted = nil
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

			// Keys that became ours are removed when we drop them, and no others.
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

// TestDeletedOwners checks which references Apply and Own remove, whether or not they set one.
func TestDeletedOwners(t *testing.T) {
	deleted := newUID()
	ref := func(change func(*metav1.OwnerReference)) metav1.OwnerReference {
		r := object{name: "gone", uid: deleted}.externalSecret()
		change(&r)
		return r
	}
	all := func(metav1.OwnerReference) bool { return true }
	cases := map[string]struct {
		reason       string
		ref          metav1.OwnerReference
		ownerDeleted func(metav1.OwnerReference) bool
		goes         bool
	}{
		"Gone":          {"A deleted ExternalSecret owns nothing.", ref(func(*metav1.OwnerReference) {}), all, true},
		"NotController": {"It makes no difference whether it was the controller.", ref(func(r *metav1.OwnerReference) { r.Controller = nil }), all, true},
		"AnotherVersion": {
			"It makes no difference which API version the reference has.",
			ref(func(r *metav1.OwnerReference) { r.APIVersion = "direct-secrets.io/v2" }), all, true,
		},
		"Living":       {"An existing ExternalSecret keeps its reference.", ref(func(*metav1.OwnerReference) {}), func(metav1.OwnerReference) bool { return false }, false},
		"NotKnown":     {"An unknown ExternalSecret counts as existing.", ref(func(*metav1.OwnerReference) {}), nil, false},
		"AnotherKind":  {"References of other Kinds stay.", ref(func(r *metav1.OwnerReference) { r.Kind = "PushSecret" }), all, false},
		"AnotherGroup": {"References of other groups stay.", ref(func(r *metav1.OwnerReference) { r.APIVersion = "external-secrets.io/v1" }), all, false},
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
					if c := (target.Others{OwnerDeleted: tc.ownerDeleted}); verb == "Apply" {
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

func TestDeletedOwnerWithReusedName(t *testing.T) {
	for verb, owner := range map[string]bool{"Owned": true, "NotOwned": false} {
		t.Run(verb, func(t *testing.T) {
			e := newEnv(t)
			o, deleted := e.object("db"), object{e: e, name: "other", uid: newUID()}
			e.writes(owned(deleted.wants("db", "other", "x"), deleted.externalSecret()))
			c := without(deleted)
			c.ManagerDeleted = nil // Another object with that name writes the Secret now.

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
