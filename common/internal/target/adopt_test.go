package target_test

import (
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
