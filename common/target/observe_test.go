package target_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/policy"
	"github.com/direct-secrets/direct-secrets/common/target"
)

// What Observe says of the metadata that a cache keeps is what it says of the whole Secret.
func TestReduce(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(e *env, o object)
		census census
		// alone is true if nobody else put any key into the Secret.
		alone bool
		want  func(o object) policy.Target
	}{
		"Created": {
			reason: "After our POST.",
			do:     func(e *env, o object) { e.writes(o.wants("db", "a", "1")) },
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true}
			},
		},
		"Owned": {
			reason: "The controller is kept.",
			do:     func(e *env, o object) { e.writes(owned(o.wants("db", "a", "1"), o.reference(true))) },
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true, Owned: true}
			},
		},
		"ForeignOwner": {
			reason: "So is somebody else's reference.",
			do: func(e *env, _ object) {
				other := e.object("other")
				e.posted("db", "kubectl", "a", "1")
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{other.reference(true)} })
			},
			want: func(o object) policy.Target {
				other := &corev1.ConfigMap{}
				if err := api.Get(o.e.ctx, o.e.key("other"), other); err != nil {
					o.e.Fatal(err)
				}
				r := object{name: "other", uid: other.UID}.reference(true)
				return policy.Target{Exists: true, Foreign: &r}
			},
		},
		"Drifted": {
			reason: "A key that somebody changed is missed.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", setData("a", "x"))
			},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(o.wants("db", "a", "1")).Mark}
			},
		},
		"DriftedInPart": {
			reason: "And those that are left are held.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1", "b", "1"))
				e.updates("db", "kubectl", setData("a", "x"))
			},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(o.wants("db", "a", "1", "b", "1")).Mark, Holds: true}
			},
		},
		"LabelChanged": {
			reason: "So is our label.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Labels[target.ManagedLabel(module)] = "no" })
			},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(o.wants("db", "a", "1")).Mark, Holds: true}
			},
		},
		"MarkRemoved": {
			reason: "Without the mark the keys are held all the same.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Annotations = nil })
			},
			want: func(object) policy.Target { return policy.Target{Exists: true, Holds: true} },
		},
		"Sealed": {
			reason: "That we made it immutable is kept.",
			do:     func(e *env, o object) { e.writes(immutable(o.wants("db", "a", "1"))) },
			alone:  true,
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(immutable(o.wants("db", "a", "1"))).Mark, Intact: true, Holds: true, Sealed: true}
			},
		},
		"SealedByTheOneBefore": {
			reason: "Also if the object of our name before us did.",
			do: func(e *env, o object) {
				e.writes(immutable(object{e: e, name: o.name, uid: "dead"}.wants("db", "a", "1")))
			},
			alone: true,
			want: func(o object) policy.Target {
				mark := created(immutable(object{e: o.e, name: o.name, uid: "dead"}.wants("db", "a", "1"))).Mark
				return policy.Target{Exists: true, Mark: mark, Intact: true, Holds: true, Sealed: true}
			},
		},
		"SealedByAPerson": {
			reason: "What somebody else made immutable is not for us to tell.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", seal)
			},
			alone: true,
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true}
			},
		},
		"SealedByAnother": {
			reason: "Nor is what another ExternalSecret made so.",
			do: func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.writes(immutable(e.object("x").wants("db", "b", "1")))
			},
			census: census{writes: func(string, types.UID, string) bool { return false }},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: created(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true}
			},
		},
		"SealedByBoth": {
			reason: "Who wants the same has done it, too.",
			do: func(e *env, o object) {
				e.posted("db", "kubectl", "a", "1")
				e.updates("db", "kubectl", seal)
				e.writes(immutable(o.wants("db", "a", "1")))
			},
			alone: true,
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Mark: immutable(o.wants("db", "a", "1")).Mark, Intact: true, Holds: true, Sealed: true}
			},
		},
		"Rivals": {
			reason: "Of several others that live, the first by name is named.",
			do: func(e *env, _ object) {
				for _, name := range []string{"z", "y", "x"} {
					e.writes(e.object(name).wants("db", name, "1"))
				}
			},
			census: census{writes: func(name string, _ types.UID, _ string) bool { return name != "x" }},
			want:   func(object) policy.Target { return policy.Target{Exists: true, Rival: "y"} },
		},
		"Dead": {
			reason: "The mark of one that is gone never blocks.",
			do:     func(e *env, _ object) { e.writes(e.object("x").wants("db", "a", "1")) },
			census: census{writes: func(string, types.UID, string) bool { return false }},
			want:   func(object) policy.Target { return policy.Target{Exists: true} },
		},
		"Terminating": {
			reason: "A Secret that is being deleted says so.",
			do: func(e *env, o object) {
				e.terminating("db")
				e.writes(o.wants("db"))
			},
			want: func(o object) policy.Target {
				return policy.Target{Exists: true, Terminating: true, Mark: o.wants("db").Mark, Intact: true}
			},
		},
		"Foreign": {
			reason: "Of a Secret that we never touched there is nothing to say.",
			do:     func(e *env, _ object) { e.posted("db", "kubectl", "a", "1") },
			want:   func(object) policy.Target { return policy.Target{Exists: true} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := e.object("db")
			tc.do(e, o)
			e.updates("db", "kubectl-clutter", func(s *corev1.Secret) {
				if s.Annotations == nil {
					s.Annotations = map[string]string{}
				}
				s.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = strings.Repeat("x", 10_000)
				if s.Labels == nil {
					s.Labels = map[string]string{}
				}
				s.Labels["theirs"] = "x"
				if s.Immutable != nil {
					return
				}
				for i := range 200 {
					setData("clutter"+strings.Repeat("y", i), "x")(s)
				}
			})
			s := e.secret("db")
			whole := &metav1.PartialObjectMetadata{ObjectMeta: *s.ObjectMeta.DeepCopy()}
			m := &metav1.PartialObjectMetadata{ObjectMeta: *s.ObjectMeta.DeepCopy()}
			target.Reduce(m)

			self := target.Identity{Name: "db", UID: o.uid, Module: module, Exclusive: true}
			want := tc.want(o)
			for what, object := range map[string]metav1.Object{"whole metadata": whole, "reduced": m} {
				if diff := cmp.Diff(want, target.Observe(object, self, tc.census)); diff != "" {
					t.Errorf("\n%s\nObserve(%s): -want, +got:\n%s", tc.reason, what, diff)
				}
			}
			want.Others = !tc.alone
			if diff := cmp.Diff(want, target.Observe(s, self, tc.census)); diff != "" {
				t.Errorf("\n%s\nObserve(whole): -want, +got:\n%s", tc.reason, diff)
			}
			for k := range m.Annotations {
				if !strings.HasPrefix(k, "direct-secrets.io/es.") {
					t.Errorf("annotation %s was kept", k)
				}
			}
			if _, kept := m.Labels["theirs"]; kept {
				t.Error("a foreign label was kept")
			}
			for _, entry := range m.ManagedFields {
				if !target.OfExternalSecret(entry.Manager) {
					t.Errorf("fields of %s were kept", entry.Manager)
				}
			}
			if size := m.Size(); size > 4096 {
				t.Errorf("%d bytes are left", size)
			}
			if m.UID != s.UID || m.ResourceVersion != s.ResourceVersion {
				t.Error("uid or resourceVersion were lost")
			}
		})
	}
}

func TestObserveNothing(t *testing.T) {
	if diff := cmp.Diff(policy.Target{}, observe(nil, "db")); diff != "" {
		t.Errorf("Observe(nil): -want, +got:\n%s", diff)
	}
}

// An entry of a subresource is not one of the Secret itself, reduced or not.
func TestReduceSubresource(t *testing.T) {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "direct-secrets:db", Operation: "Update", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)},
	}}}
	whole := target.FieldsOf(m.ManagedFields, "direct-secrets:db")
	target.Reduce(m)
	if diff := cmp.Diff(whole, target.FieldsOf(m.ManagedFields, "direct-secrets:db")); diff != "" {
		t.Errorf("FieldsOf(...): -whole, +reduced:\n%s", diff)
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
				got := target.Observe(m, target.Identity{Name: "db", UID: "uid-db", Module: module, Exclusive: true}, c)
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
			if got := target.Observe(s, self, tc.census).Rival; got != tc.want {
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
		"CoHeldMark": {
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
