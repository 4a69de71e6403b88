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

// Whose a Secret is, by its owners: before it bears our mark, and after.
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
	// Of the ExternalSecrets only these are gone.
	c := census{lives: func(name string, uid types.UID) bool {
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
		"None": {reason: "A Secret of nobody."},
		"Ours": {
			reason:   "Our reference as controller makes it owned.",
			refs:     []metav1.OwnerReference{es("db", true)},
			unmarked: seen{Owned: true}, marked: seen{Owned: true},
		},
		"OursNotController": {
			reason: "Our reference that does not control is to be put right, and blocks nobody.",
			refs:   []metav1.OwnerReference{es("db", false)},
		},
		"ForeignController": {
			reason:   "What somebody else controls is theirs, also after we wrote it.",
			refs:     []metav1.OwnerReference{database("pg", true)},
			unmarked: seen{Foreign: "pg"}, marked: seen{Foreign: "pg"},
		},
		"ForeignNotController": {
			reason:   "Any owner keeps us from adopting; one that comes later is no harm.",
			refs:     []metav1.OwnerReference{database("pg", false)},
			unmarked: seen{Foreign: "pg"},
		},
		"ForeignUndecided": {
			reason:   "Without the field an owner does not control.",
			refs:     []metav1.OwnerReference{undecided},
			unmarked: seen{Foreign: "pg"},
		},
		"ForeignNotControllerBesideOurs": {
			reason:   "Also beside ours.",
			refs:     []metav1.OwnerReference{database("pg", false), es("db", true)},
			unmarked: seen{Owned: true, Foreign: "pg"}, marked: seen{Owned: true},
		},
		"SeveralForeign": {
			reason:   "The first is named.",
			refs:     []metav1.OwnerReference{database("pg", false), database("mysql", false)},
			unmarked: seen{Foreign: "pg"},
		},
		"ControllerLast": {
			reason:   "But rather the one that controls.",
			refs:     []metav1.OwnerReference{database("pg", false), database("mysql", true)},
			unmarked: seen{Foreign: "mysql"}, marked: seen{Foreign: "mysql"},
		},
		"ControllerFirst": {
			reason:   "Wherever it stands.",
			refs:     []metav1.OwnerReference{database("mysql", true), database("pg", false)},
			unmarked: seen{Foreign: "mysql"}, marked: seen{Foreign: "mysql"},
		},
		"GoneOfOurName": {
			reason: "The object of our name before us owns nothing.",
			refs:   []metav1.OwnerReference{before},
		},
		"NewerOfOurName": {
			reason: "Nor does one that came after us: then we are gone ourselves, which the fence finds out.",
			refs:   []metav1.OwnerReference{newer},
		},
		"GoneOfAnotherName": {
			reason: "Nor does any ExternalSecret that is gone.",
			refs:   []metav1.OwnerReference{es("gone", true)},
		},
		"GoneNotController": {
			reason: "Whether it controlled or not.",
			refs:   []metav1.OwnerReference{es("gone", false)},
		},
		"GoneOfAnotherVersion": {
			reason: "Only the group counts.",
			refs:   []metav1.OwnerReference{ref("direct-secrets.io/v2", "ExternalSecret", "gone", true)},
		},
		"GoneBesideOurs": {
			reason:   "It hides nothing.",
			refs:     []metav1.OwnerReference{before, es("db", true)},
			unmarked: seen{Owned: true}, marked: seen{Owned: true},
		},
		"GoneBesideForeign": {
			reason:   "And nobody.",
			refs:     []metav1.OwnerReference{es("gone", true), database("pg", false)},
			unmarked: seen{Foreign: "pg"},
		},
		"Living": {
			reason:   "A living ExternalSecret is an owner like any other.",
			refs:     []metav1.OwnerReference{es("other", true)},
			unmarked: seen{Foreign: "other"}, marked: seen{Foreign: "other"},
		},
		"LivingNotController": {
			reason:   "Also where it does not control.",
			refs:     []metav1.OwnerReference{es("other", false)},
			unmarked: seen{Foreign: "other"},
		},
		"GoneOfAnotherKind": {
			reason:   "Of other Kinds we know nothing: they live.",
			refs:     []metav1.OwnerReference{ref("direct-secrets.io/v1alpha1", "PushSecret", "gone", true)},
			unmarked: seen{Foreign: "gone"}, marked: seen{Foreign: "gone"},
		},
		"GoneOfAnotherGroup": {
			reason:   "So does the ExternalSecret of another operator.",
			refs:     []metav1.OwnerReference{ref("external-secrets.io/v1", "ExternalSecret", "gone", true)},
			unmarked: seen{Foreign: "gone"}, marked: seen{Foreign: "gone"},
		},
		"GoneOfAProvidersGroup": {
			reason:   "And what a provider calls so.",
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

// Who else writes a Secret matters only to who wants it alone.
func TestObserveRival(t *testing.T) {
	marks := map[string]string{}
	for _, name := range []string{"b", "a", "db"} {
		marks[target.MarkKey(name)] = `{"name":"` + name + `","uid":"uid-` + name + `"}`
	}
	s := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "the-secret", Annotations: marks}}
	cases := map[string]struct {
		reason    string
		exclusive bool
		census    census
		want      string
	}{
		"Exclusive": {"The first by name is the rival, and never ourselves.", true, census{}, "a"},
		"Shared":    {"Who shares has none.", false, census{}, ""},
		"Gone": {
			"One that is gone is none.", true,
			census{writes: func(name string, _ types.UID, _ string) bool { return name != "a" }}, "b",
		},
		"OfThatUID": {
			"The census is asked for the very object that marked, and for the very Secret.", true,
			census{writes: func(name string, uid types.UID, secret string) bool {
				return string(uid) == "uid-"+name && secret == "the-secret"
			}}, "a",
		},
		"WritesAnotherSecret": {
			"One that lives, and has left its mark, but writes elsewhere now, is none.", true,
			census{writes: func(string, types.UID, string) bool { return false }}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			self := target.Identity{Name: "db", UID: "uid-db", Module: module, Exclusive: tc.exclusive}
			if got := target.Observe(t.Context(), s, self, tc.census).Rival; got != tc.want {
				t.Errorf("\n%s\nRival: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// Whether a Secret may go without loss for others shows only where its data does.
func TestObserveOthers(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(e *env, o object)
		want   bool
	}{
		"OwnKeys":        {"Our keys are ours alone.", func(*env, object) {}, false},
		"OwnKeysApplied": {"However we wrote them.", func(e *env, o object) { e.writes(o.wants("db", "a", "1", "b", "2")) }, false},
		"NoKeys":         {"No key is nobody's.", func(e *env, o object) { e.writes(o.wants("db")) }, false},
		"ForeignKey":     {"A key of a person.", func(e *env, _ object) { e.updates("db", "kubectl", setData("theirs", "x")) }, true},
		"EmptyForeignKey": {
			"Also one without a value.",
			func(e *env, _ object) { e.updates("db", "kubectl", setData("theirs", "")) }, true,
		},
		"KeyOfNobody": {
			"Also one that no entry names.",
			func(e *env, _ object) {
				e.mustApply("db", "flux", map[string]any{"stringData": map[string]string{"theirs": "x"}})
			}, true,
		},
		"KeyOfAnother": {"Also one of another ExternalSecret.", func(e *env, _ object) { e.writes(e.object("x").wants("db", "x", "1")) }, true},
		"CoHeldByATool": {
			"A key that somebody else holds with us is not ours alone.",
			func(e *env, _ object) { e.mustApply("db", "flux", data("a", "1")) }, true,
		},
		"CoHeldByAnother": {
			"Whoever that is.",
			func(e *env, _ object) { e.mustApply("db", "direct-secrets:x", data("a", "1")) }, true,
		},
		"TakenByAPerson": {
			"A key that somebody changed is theirs.",
			func(e *env, _ object) { e.updates("db", "kubectl", setData("a", "x")) }, true,
		},
		"ManagedFieldsReset": {
			"Where nobody knows whose the keys are, they are not known to be ours.",
			func(e *env, _ object) { e.resetsManagedFields("db") }, true,
		},
		"ForeignMetadata": {
			"Labels and annotations are no reason to keep a Secret.",
			func(e *env, _ object) {
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Labels["theirs"], s.Annotations["theirs"] = "x", "x" })
			}, false,
		},
		"MarkOfAnother": {
			"Nor is the mark of another that has no key.",
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
				t.Errorf("\n%s\nOthers of mere metadata: got true", tc.reason)
			}
		})
	}
}
