package target_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

func TestObserveNothing(t *testing.T) {
	if diff := cmp.Diff(policy.Target{}, observe(nil, "db")); diff != "" {
		t.Errorf("Observe(nil): -want, +got:\n%s", diff)
	}
}

// TestObserveOwners checks the owner of a Secret by its references, without and with our mark.
func TestObserveOwners(t *testing.T) {
	ref := func(apiVersion, kind, name string, controls bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &controls}
	}
	es := func(name string, controls bool) metav1.OwnerReference {
		return ref("direct-secrets.io/v1alpha1", "ExternalSecret", name, controls)
	}
	database := func(name string, controls bool) metav1.OwnerReference {
		return ref("example.com/v1", "Database", name, controls)
	}
	// Only these ExternalSecrets are deleted.
	c := peers{exists: func(name string, uid types.UID) bool {
		return uid != "uid-gone" && (name != "db" || uid == "uid-db" || uid == "uid-newer")
	}}
	before := es("db", true)
	before.UID = "uid-before"
	newer := es("db", true)
	newer.UID = "uid-newer"
	undecided := database("pg", false)
	undecided.Controller = nil

	type seen struct {
		Owned   bool
		Foreign string // The name of the owner.
	}
	cases := map[string]struct {
		reason           string
		refs             []metav1.OwnerReference
		unmarked, marked seen
	}{
		"None": {reason: "A Secret without owner."},
		"Ours": {
			reason:   "Our controller reference makes it owned.",
			refs:     []metav1.OwnerReference{es("db", true)},
			unmarked: seen{Owned: true}, marked: seen{Owned: true},
		},
		"OursNotController": {
			reason: "Our reference without controller does not count, and blocks no other owner.",
			refs:   []metav1.OwnerReference{es("db", false)},
		},
		"ForeignController": {
			reason:   "A Secret with another controller is theirs, also after we wrote it.",
			refs:     []metav1.OwnerReference{database("pg", true)},
			unmarked: seen{Foreign: "pg"}, marked: seen{Foreign: "pg"},
		},
		"ForeignNotController": {
			reason:   "Any owner prevents adoption; an owner added later has no effect.",
			refs:     []metav1.OwnerReference{database("pg", false)},
			unmarked: seen{Foreign: "pg"},
		},
		"ForeignUndecided": {
			reason:   "Without the field an owner is no controller.",
			refs:     []metav1.OwnerReference{undecided},
			unmarked: seen{Foreign: "pg"},
		},
		"ForeignNotControllerAndOurs": {
			reason:   "It counts also if there is a reference to us.",
			refs:     []metav1.OwnerReference{database("pg", false), es("db", true)},
			unmarked: seen{Owned: true, Foreign: "pg"}, marked: seen{Owned: true},
		},
		"SeveralForeign": {
			reason:   "The first owner is named.",
			refs:     []metav1.OwnerReference{database("pg", false), database("mysql", false)},
			unmarked: seen{Foreign: "pg"},
		},
		"ControllerLast": {
			reason:   "A controller takes precedence.",
			refs:     []metav1.OwnerReference{database("pg", false), database("mysql", true)},
			unmarked: seen{Foreign: "mysql"}, marked: seen{Foreign: "mysql"},
		},
		"ControllerFirst": {
			reason:   "The position makes no difference.",
			refs:     []metav1.OwnerReference{database("mysql", true), database("pg", false)},
			unmarked: seen{Foreign: "mysql"}, marked: seen{Foreign: "mysql"},
		},
		"GoneOfOurName": {
			reason: "A former object with our name owns nothing.",
			refs:   []metav1.OwnerReference{before},
		},
		"NewerOfOurName": {
			reason: "A later object with our name owns nothing: then we are deleted ourselves, which the fence finds out.",
			refs:   []metav1.OwnerReference{newer},
		},
		"GoneOfAnotherName": {
			reason: "A deleted ExternalSecret owns nothing.",
			refs:   []metav1.OwnerReference{es("gone", true)},
		},
		"GoneNotController": {
			reason: "It makes no difference whether it was the controller.",
			refs:   []metav1.OwnerReference{es("gone", false)},
		},
		"GoneOfAnotherVersion": {
			reason: "Only the group counts.",
			refs:   []metav1.OwnerReference{ref("direct-secrets.io/v2", "ExternalSecret", "gone", true)},
		},
		"GoneAndOurs": {
			reason:   "It hides no reference to us.",
			refs:     []metav1.OwnerReference{before, es("db", true)},
			unmarked: seen{Owned: true}, marked: seen{Owned: true},
		},
		"GoneAndForeign": {
			reason:   "It hides no other owner.",
			refs:     []metav1.OwnerReference{es("gone", true), database("pg", false)},
			unmarked: seen{Foreign: "pg"},
		},
		"Living": {
			reason:   "An existing ExternalSecret is an owner like any other.",
			refs:     []metav1.OwnerReference{es("other", true)},
			unmarked: seen{Foreign: "other"}, marked: seen{Foreign: "other"},
		},
		"LivingNotController": {
			reason:   "It counts also without controller.",
			refs:     []metav1.OwnerReference{es("other", false)},
			unmarked: seen{Foreign: "other"},
		},
		"GoneOfAnotherKind": {
			reason:   "Owners of other Kinds count as existing.",
			refs:     []metav1.OwnerReference{ref("direct-secrets.io/v1alpha1", "PushSecret", "gone", true)},
			unmarked: seen{Foreign: "gone"}, marked: seen{Foreign: "gone"},
		},
		"GoneOfAnotherGroup": {
			reason:   "The ExternalSecret of another operator counts as existing.",
			refs:     []metav1.OwnerReference{ref("external-secrets.io/v1", "ExternalSecret", "gone", true)},
			unmarked: seen{Foreign: "gone"}, marked: seen{Foreign: "gone"},
		},
		"GoneOfAProvidersGroup": {
			reason:   "A provider's Kind with that name counts as existing.",
			refs:     []metav1.OwnerReference{ref("aws.direct-secrets.io/v1alpha1", "ExternalSecret", "gone", true)},
			unmarked: seen{Foreign: "gone"}, marked: seen{Foreign: "gone"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			see := func(annotations map[string]string) seen {
				m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "db", OwnerReferences: tc.refs, Annotations: annotations}}
				got := target.Observe(t.Context(), m, target.Identity{Name: "db", UID: "uid-db", Module: module, Exclusive: true}, c)
				if marked := got.Mark.UID != ""; marked != (annotations != nil) {
					t.Fatalf("marked: %v", marked)
				}
				s := seen{Owned: got.Owned}
				if got.Foreign != nil {
					s.Foreign = got.Foreign.Name
				}
				return s
			}
			if diff := cmp.Diff(tc.unmarked, see(nil)); diff != "" {
				t.Errorf("\n%s\nObserve(unmarked): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.marked, see(map[string]string{target.MarkKey("db"): `{"name":"db","uid":"uid-before"}`})); diff != "" {
				t.Errorf("\n%s\nObserve(marked): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestObserveOtherWriter checks that other writers matter only to an exclusive object.
func TestObserveOtherWriter(t *testing.T) {
	marks := map[string]string{}
	for _, name := range []string{"b", "a", "db"} {
		marks[target.MarkKey(name)] = `{"name":"` + name + `","uid":"uid-` + name + `"}`
	}
	s := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "the-secret", Annotations: marks}}
	cases := map[string]struct {
		reason    string
		exclusive bool
		peers     peers
		want      string
	}{
		"Exclusive": {"The first other object by name is the rival.", true, peers{}, "a"},
		"Shared":    {"An object that shares has no rival.", false, peers{}, ""},
		"Gone": {
			"A deleted object is no rival.", true,
			peers{writes: func(name string, _ types.UID, _ string) bool { return name != "a" }}, "b",
		},
		"OfThatUID": {
			"The census is asked for exactly the uid in the mark and this Secret.", true,
			peers{writes: func(name string, uid types.UID, secret string) bool {
				return string(uid) == "uid-"+name && secret == "the-secret"
			}}, "a",
		},
		"WritesAnotherSecret": {
			"An existing object with a mark that now writes elsewhere is no rival.", true,
			peers{writes: func(string, types.UID, string) bool { return false }}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			self := target.Identity{Name: "db", UID: "uid-db", Module: module, Exclusive: tc.exclusive}
			if got := target.Observe(t.Context(), s, self, tc.peers).OtherWriter; got != tc.want {
				t.Errorf("\n%s\nRival: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestObserveOthers checks that only a live read shows whether others have keys in a Secret.
func TestObserveOthers(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(e *env, o object)
		want   bool
	}{
		"OwnKeys":        {"Our keys are ours alone.", func(*env, object) {}, false},
		"OwnKeysApplied": {"Our applied keys are ours alone.", func(e *env, o object) { e.writes(o.wants("db", "a", "1", "b", "2")) }, false},
		"NoKeys":         {"Without keys there are none of others.", func(e *env, o object) { e.writes(o.wants("db")) }, false},
		"ForeignKey":     {"A user has added a key.", func(e *env, _ object) { e.updates("db", "kubectl", setData("theirs", "x")) }, true},
		"KeyWithoutOwner": {
			"A key without an entry counts, too.",
			func(e *env, _ object) {
				e.mustApply("db", "flux", map[string]any{"stringData": map[string]string{"theirs": "x"}})
			}, true,
		},
		"CoHeldByATool": {
			"A key that another manager also holds is not ours alone.",
			func(e *env, _ object) { e.mustApply("db", "flux", data("a", "1")) }, true,
		},
		"ManagedFieldsReset": {
			"If the owner of the keys is unknown, they do not count as ours.",
			func(e *env, _ object) { e.resetsManagedFields("db") }, true,
		},
		"ForeignMetadata": {
			"Labels and annotations are no reason to keep a Secret.",
			func(e *env, _ object) {
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Labels["theirs"], s.Annotations["theirs"] = "x", "x" })
			}, false,
		},
		"MarkOfAnother": {
			"The mark of an object without keys is no reason to keep a Secret.",
			func(e *env, _ object) { e.writes(e.object("x").wants("db")) }, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			e.writes(o.wants("db", "a", "1", "b", "1"))
			tc.do(e, o)
			s := e.secret("db")
			if got := observe(s, "db").Others; got != tc.want {
				t.Errorf("\n%s\nOthers of a live Secret: got %v, want %v; %v", tc.reason, got, tc.want, s.ManagedFields)
			}
			if observe(&metav1.PartialObjectMetadata{ObjectMeta: s.ObjectMeta}, "db").Others {
				t.Errorf("\n%s\nOthers from metadata only: got true", tc.reason)
			}
		})
	}
}
