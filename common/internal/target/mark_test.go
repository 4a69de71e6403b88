package target_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

func TestNamesAreValid(t *testing.T) {
	longest := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + "." + strings.Repeat("d", 61)
	fits := strings.Repeat("e", 128-len("direct-secrets:"))
	cases := map[string]struct {
		reason  string
		name    string
		manager string // Empty if it is hashed.
	}{
		"Short":   {"The name shows in kubectl.", "db", "direct-secrets:db"},
		"Fits":    {"128 characters are allowed.", fits, "direct-secrets:" + fits},
		"TooLong": {"A longer name is hashed.", fits + "e", ""},
		"Longest": {"The longest possible object name is hashed.", longest, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := target.Manager(tc.name)
			if tc.manager != "" && m != tc.manager {
				t.Errorf("\n%s\nManager(...): got %q, want %q", tc.reason, m, tc.manager)
			}
			if tc.manager == "" && (strings.Contains(m, tc.name) || m == target.Manager(tc.name+"x")) {
				t.Errorf("\n%s\nManager(...): got %q, want a hash of the name", tc.reason, m)
			}
			if errs := metav1validation.ValidateFieldManager(m, field.NewPath("fieldManager")); len(errs) > 0 {
				t.Error(errs)
			}
			if !target.OfExternalSecret(m) {
				t.Errorf("OfExternalSecret(%q): got false", m)
			}
			for _, k := range []string{
				target.MarkKey(tc.name), target.ManagedLabel("aws.direct-secrets.io"),
				target.StoreLabel("aws.direct-secrets.io", "ClusterAWSSecretsManager", "", tc.name),
			} {
				if errs := validation.IsQualifiedName(k); len(errs) > 0 {
					t.Errorf("%s: %v", k, errs)
				}
			}
		})
	}
}

// TestLongestName checks writes with the longest possible name.
func TestLongestName(t *testing.T) {
	e := newEnv(t)
	name := strings.Repeat("n", 253)
	o := e.object(name)
	d := o.wants(name, "a", "1", "b", "1")
	d.Labels[target.StoreLabel("g", "K", e.ns, name)] = "true"
	d.Seal()
	e.writes(owned(d, o.reference(true)))
	e.writes(o.wants(name, "a", "2"))
	s := e.wantData(name, map[string]string{"a": "2"})
	if diff := cmp.Diff([]string{o.manager()}, holders(s, "a")); diff != "" {
		t.Errorf("holders: -want, +got:\n%s", diff)
	}
	if got := observe(s, name); !got.Intact || got.Mark.Name != name {
		t.Errorf("Observe(...): got %+v", got)
	}
}

// TestStoreLabelsDiffer checks that names which would be equal after a simple concatenation have different labels.
func TestStoreLabelsDiffer(t *testing.T) {
	seen := map[string][4]string{}
	for _, s := range [][4]string{
		{"g", "K", "ns", "n"}, {"g", "K", "", "n"}, {"g", "K", "n", "s"}, {"g", "ClusterK", "", "n"}, {"h", "K", "ns", "n"},
	} {
		l := target.StoreLabel(s[0], s[1], s[2], s[3])
		if other, twice := seen[l]; twice {
			t.Errorf("%v and %v have the same label", s, other)
		}
		seen[l] = s
	}
}

func TestMarksDoNotCollide(t *testing.T) {
	e := newEnv(t)
	a, b, c := e.object("a"), e.object("b"), e.object("c")
	e.writes(a.wants("db", "a", "1"))
	e.writes(b.wants("db", "b", "1"))
	e.writes(c.wants("db", "c", "1"))
	e.writes(b.wants("db", "b", "2"))
	e.updates("db", "kubectl", func(s *corev1.Secret) { s.Annotations["theirs"] = "x" })

	s := e.wantData("db", map[string]string{"a": "1", "b": "2", "c": "1"})
	want := map[string]policy.Mark{
		"a": created(a.wants("db", "a", "1")).Mark,
		"b": b.wants("db", "b", "2").Mark,
		"c": c.wants("db", "c", "1").Mark,
	}
	if diff := cmp.Diff(want, target.Marks(s.Annotations)); diff != "" {
		t.Errorf("Marks(...): -want, +got:\n%s", diff)
	}
	for _, o := range []object{a, b, c} {
		got := target.FieldsOf(s.ManagedFields, o.manager())
		want := target.Fields{Data: []string{o.name}, Labels: []string{module + "/managed"}, Annotations: []string{target.MarkKey(o.name)}, Type: true}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("FieldsOf(%s): -want, +got:\n%s", o.name, diff)
		}
		if !observe(s, o.name).Intact {
			t.Errorf("%s is not intact", o.name)
		}
	}
}

func TestMarksPassesOver(t *testing.T) {
	cases := map[string]struct {
		reason      string
		annotations map[string]string
	}{
		"None":         {"A Secret without annotations has no marks.", nil},
		"Foreign":      {"Other annotations are no marks.", map[string]string{"example.com/es.x": `{"name":"x"}`}},
		"NotJSON":      {"An annotation that cannot be decoded is no mark.", map[string]string{target.MarkKey("x"): "x"}},
		"NotAnObject":  {"Other JSON is no mark.", map[string]string{target.MarkKey("x"): `["x"]`}},
		"OfAnotherKey": {"A mark copied to another key is no mark.", map[string]string{target.MarkKey("x"): `{"name":"y","uid":"1"}`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(map[string]policy.Mark(nil), target.Marks(tc.annotations)); diff != "" {
				t.Errorf("\n%s\nMarks(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHash(t *testing.T) {
	seal := func(uid types.UID, kind corev1.SecretType, pairs ...string) policy.Mark {
		d := target.Desired{
			Type: kind, Data: bytesOf(pairs...), Labels: map[string]string{"l": "true"},
			Mark: policy.Mark{Name: "db", UID: uid, Generation: 1, Module: module},
		}
		d.Seal()
		return d.Mark
	}
	base := seal("1", "Opaque", "a", "1", "b", "2")
	cases := map[string]struct {
		reason       string
		mark         policy.Mark
		hash, fields bool // Equal to those of base.
	}{
		"Same":         {"Equal input has an equal hash.", seal("1", "Opaque", "b", "2", "a", "1"), true, true},
		"OtherUID":     {"The hash is keyed with the uid, so equal values in two Secrets do not show.", seal("2", "Opaque", "a", "1", "b", "2"), false, true},
		"OtherType":    {"The hash covers the type.", seal("1", "kubernetes.io/tls", "a", "1", "b", "2"), false, true},
		"OtherValue":   {"The hash covers every value.", seal("1", "Opaque", "a", "1", "b", "3"), false, true},
		"EmptyValue":   {"An empty value differs from another value.", seal("1", "Opaque", "a", "1", "b", ""), false, true},
		"OtherKey":     {"The hash covers every key.", seal("1", "Opaque", "a", "1", "c", "2"), false, false},
		"FewerKeys":    {"The hash covers the number of keys.", seal("1", "Opaque", "a", "1"), false, false},
		"MoreKeys":     {"The hash covers the number of keys.", seal("1", "Opaque", "a", "1", "b", "2", "c", ""), false, false},
		"Swapped":      {"A value is hashed with its key.", seal("1", "Opaque", "a", "2", "b", "1"), false, true},
		"Concatenated": {"The hash covers lengths.", seal("1", "Opaque", "a", "1b2"), false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.mark.Hash == base.Hash; got != tc.hash {
				t.Errorf("\n%s\nhashes equal: got %v, want %v", tc.reason, got, tc.hash)
			}
			if got := tc.mark.Fields == base.Fields; got != tc.fields {
				t.Errorf("\n%s\nhashes of the fields equal: got %v, want %v", tc.reason, got, tc.fields)
			}
		})
	}
}

// TestCreated checks that the mark records who created the Secret, as long as the mark of that name exists.
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
			if _, blocked, err := e.w.Apply(e.ctx, e.secret("db"), o.wants("db", "a", "2", "b", "2"), allExist()); err != nil || len(blocked) != 1 {
				e.Fatalf("Apply: yielded %q, error %v", blocked, err)
			}
		}},
		{"Apply of a new uid", func(e *env, _, next object) { e.writes(next.wants("db", "a", "3")) }},
		{"Own of the former uid", func(e *env, o, _ object) { e.owns(o.wants("db")) }},
		{"Own of a new uid", func(e *env, _, next object) {
			// The garbage collector looks for an object with exactly this name and uid.
			e.owns(owned(next.wants("db"), object{name: "next", uid: next.uid}.reference(true)))
		}},
		{"Apply without keys", func(e *env, _, next object) { e.writes(next.wants("db")) }},
	}
	cases := map[string]struct {
		reason string
		before func(e *env, o object)
		want   bool
	}{
		"Created": {"A Secret that we posted counts as created.", func(e *env, o object) { e.writes(o.wants("db", "a", "1")) }, true},
		"Adopted": {
			"An adopted Secret does not.",
			func(e *env, o object) {
				e.posted("db", "kubectl", "a", "1")
				e.writes(o.wants("db", "a", "1"))
			}, false,
		},
		"CreatedByAnother": {
			"A Secret that another ExternalSecret posted does not.",
			func(e *env, o object) {
				e.writes(e.object("other").wants("db", "x", "1"))
				e.writes(o.wants("db", "a", "1"))
			}, false,
		},
		"MarkRemoved": {
			"A Secret without our mark does not.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Annotations = nil })
				e.writes(o.wants("db", "a", "1"))
			}, false,
		},
		"MarkRemovedThenOwned": {
			"The first write makes no difference.",
			func(e *env, o object) {
				e.writes(o.wants("db", "a", "1"))
				e.updates("db", "kubectl", func(s *corev1.Secret) { s.Annotations = nil })
				e.owns(o.wants("db"))
			}, false,
		},
		"MarkRemovedButKnown": {
			"It does if the caller knows that it created this Secret.",
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
			// The mark of the other object is independent of ours.
			if other, ok := target.Marks(e.secret("db").Annotations)["other"]; ok && !other.Created {
				t.Errorf("\n%s\nthe mark of the other: %+v", tc.reason, other)
			}
		})
	}
}

// TestMarksAreBounded puts more marks on a Secret than MaxMarks. None must be read, and the cache must keep almost
// nothing of them.
func TestMarksAreBounded(t *testing.T) {
	marked := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			name := fmt.Sprint("m", i)
			mark, err := json.Marshal(policy.Mark{Name: name, UID: "u"})
			if err != nil {
				t.Fatal(err)
			}
			m[target.MarkKey(name)] = string(mark)
		}
		return m
	}
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		self        string
		crowded     bool
		marks       int
	}{
		"Last":  {"The last mark within the limit counts.", marked(target.MaxMarks), "m0", false, target.MaxMarks},
		"Next":  {"One more mark would exceed the limit.", marked(target.MaxMarks), "other", true, target.MaxMarks},
		"Many":  {"Over the limit no mark counts.", marked(4000), "m0", true, 0},
		"Other": {"One mark below the limit, another one is allowed.", marked(target.MaxMarks - 1), "other", false, target.MaxMarks - 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			for _, kept := range []string{"live", "cached"} {
				if got := observe(s, tc.self).Crowded; got != tc.crowded {
					t.Errorf("\n%s\nObserve(...).Crowded, %s: got %t", tc.reason, kept, got)
				}
				if diff := cmp.Diff(tc.marks, len(target.Marks(s.Annotations))); diff != "" {
					t.Errorf("\n%s\nMarks(...), %s: -want, +got:\n%s", tc.reason, kept, diff)
				}
				target.Reduce(s)
			}
			if size := s.Size(); size > 16<<10 {
				t.Errorf("%d bytes are left", size)
			}
		})
	}
}
