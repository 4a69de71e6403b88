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
		"Fits":    {"128 characters are just allowed.", fits, "direct-secrets:" + fits},
		"TooLong": {"One more is hashed.", fits + "e", ""},
		"Longest": {"The longest name that an object can have is hashed.", longest, ""},
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

// The longest name works from end to end.
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

// Names that would be alike after a careless concatenation are not.
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
		"NotJSON":      {"What cannot be read is no mark.", map[string]string{target.MarkKey("x"): "x"}},
		"NotAnObject":  {"Nor is other JSON.", map[string]string{target.MarkKey("x"): `["x"]`}},
		"OfAnotherKey": {"A mark that was copied to another key is none.", map[string]string{target.MarkKey("x"): `{"name":"y","uid":"1"}`}},
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
		"OtherUID":     {"Keyed with the uid: equal values in two Secrets do not show.", seal("2", "Opaque", "a", "1", "b", "2"), false, true},
		"OtherType":    {"The type is covered.", seal("1", "kubernetes.io/tls", "a", "1", "b", "2"), false, true},
		"OtherValue":   {"Every value is covered.", seal("1", "Opaque", "a", "1", "b", "3"), false, true},
		"EmptyValue":   {"Also against none.", seal("1", "Opaque", "a", "1", "b", ""), false, true},
		"OtherKey":     {"Every key is covered.", seal("1", "Opaque", "a", "1", "c", "2"), false, false},
		"FewerKeys":    {"And their number.", seal("1", "Opaque", "a", "1"), false, false},
		"MoreKeys":     {"And their number.", seal("1", "Opaque", "a", "1", "b", "2", "c", ""), false, false},
		"Swapped":      {"A value belongs to its key.", seal("1", "Opaque", "a", "2", "b", "1"), false, true},
		"Concatenated": {"Lengths are covered.", seal("1", "Opaque", "a", "1b2"), false, false},
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
			"What we adopted is not.",
			func(e *env, o object) {
				e.posted("db", "kubectl", "a", "1")
				e.writes(o.wants("db", "a", "1"))
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

// TestMarksAreBounded puts more marks on a Secret than there may be: none is read, and the cache keeps next to nothing of them.
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
		"Last":  {"The last one who fits is among them.", marked(target.MaxMarks), "m0", false, target.MaxMarks},
		"Next":  {"The next one would be one too many.", marked(target.MaxMarks), "other", true, target.MaxMarks},
		"Many":  {"Of too many none counts.", marked(4000), "m0", true, 0},
		"Other": {"There is room for one more.", marked(target.MaxMarks - 1), "other", false, target.MaxMarks - 1},
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
