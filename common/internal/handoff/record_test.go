package handoff

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// TestCompatible decodes a part in the format of the first version, which must stay readable.
func TestCompatible(t *testing.T) {
	ref := v1alpha1.StoreRef{Kind: "Password", Name: "pw"}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.PartAnnotation: `{"kind":"ExternalSecret","name":"db","uid":"u","entries":{"` + pinnedID + `":{` +
			`"generator":{"kind":"Password","name":"pw"},"version":"v1","spec":"s","request":"r","made":"2030-01-01T12:00:00Z","expires":"2030-01-02T12:00:00Z","state":"x","clean":true,"previous":"v0","later":1}},` +
			`"retired":[{"generator":{"kind":"Password","name":"pw"},"version":"v0","state":"w"}],"later":1}`}},
		Type: "direct-secrets.io/part",
		Data: map[string][]byte{pinnedID: []byte(`{"current":{"password":"b25l"},"previous":{"password":"emVybw=="},"later":1}`)},
	}
	a, ok := Answer(s, ref)
	want := provider.Answer{Value: provider.Value{Version: "v1"}, Found: []provider.Value{{Key: "password", Data: []byte("one")}, {Key: "password-previous", Data: []byte("zero")}}}
	if diff := cmp.Diff(want, a); diff != "" || !ok {
		t.Errorf("Answer(): %t, -want, +got:\n%s", ok, diff)
	}
	rec, ok := Of(s.Annotations)
	if !ok || !rec.Serves("u", ref, "r") || !rec.Serves("u", ref, "") || rec.Serves("u", ref, "other") || rec.Serves("v", ref, "") || !rec.Cleans() || !rec.Kept(rec.Retired[0]) {
		t.Errorf("the record is read as %+v, %t", rec, ok)
	}
	if diff := cmp.Diff(Entry{
		Generator: Generator{"Password", "pw"}, Version: "v1", Spec: "s", Request: "r", Made: noon, Expires: noon.Add(24 * time.Hour), State: "x", Clean: true, Previous: "v0",
	}, rec.Entries[pinnedID]); diff != "" {
		t.Errorf("the entry: -want, +got:\n%s", diff)
	}
}

// pinnedID is the ID of Password "pw". If an upgrade changed it, values would not be found.
const pinnedID = "e77b9bfb9a06a74c"

func TestAnswerRefuses(t *testing.T) {
	ref := v1alpha1.StoreRef{Kind: "Password", Name: "pw"}
	good := func() *corev1.Secret {
		rec := Record{Kind: "ExternalSecret", Name: "db", UID: "u", Entries: map[string]Entry{ID(ref): {Version: "v"}}}
		raw, err := Values{Current: map[string][]byte{"k": []byte("v")}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		s := &corev1.Secret{Type: Type, Data: map[string][]byte{ID(ref): raw}}
		if err := rec.Put(s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, ok := Answer(good(), ref); !ok {
		t.Fatal("Answer() refuses a good part")
	}
	cases := map[string]struct {
		reason string
		change func(*corev1.Secret)
	}{
		"Type":         {"A Secret of another type is no part.", func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }},
		"NoAnnotation": {"A part without a record has no values.", func(s *corev1.Secret) { s.Annotations = nil }},
		"Garbage":      {"A part with an invalid record has no values.", func(s *corev1.Secret) { s.Annotations[v1alpha1.PartAnnotation] = "{" }},
		"NoName":       {"A record without an object has no values.", func(s *corev1.Secret) { s.Annotations[v1alpha1.PartAnnotation] = "{}" }},
		"NoData":       {"The values are missing.", func(s *corev1.Secret) { s.Data = nil }},
		"GarbledData":  {"The values cannot be decoded.", func(s *corev1.Secret) { s.Data[ID(ref)] = []byte("x") }},
		"EmptyData":    {"There are no values.", func(s *corev1.Secret) { s.Data[ID(ref)] = []byte("{}") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := good()
			tc.change(s)
			if a, ok := Answer(s, ref); ok {
				t.Errorf("\n%s\nAnswer(): %v, want none", tc.reason, a.Value.Version)
			}
		})
	}
}

func TestCheckValues(t *testing.T) {
	cases := map[string]struct {
		reason  string
		values  map[string][]byte
		message string
	}{
		"Good":    {"The key is valid in a Secret.", map[string][]byte{"password": []byte("x")}, ""},
		"BadKey":  {"The key is invalid in a Secret.", map[string][]byte{"pass word": []byte("x")}, `"pass word"`},
		"LongKey": {"The key is too long with its suffix.", map[string][]byte{strings.Repeat("k", 250): nil}, "is not valid in a Secret"},
		"TooMuch": {"A part holds the values twice.", map[string][]byte{"k": make([]byte, 300<<10)}, "are allowed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckValues(tc.values)
			if tc.message == "" && err != nil || tc.message != "" && (err == nil || !strings.Contains(err.Error(), tc.message)) {
				t.Errorf("\n%s\nCheckValues(): %v, want an error with %q", tc.reason, err, tc.message)
			}
		})
	}
}

func TestAll(t *testing.T) {
	v := Values{Current: map[string][]byte{"a": []byte("1"), "b-previous": []byte("own")}, Previous: map[string][]byte{"a": []byte("0"), "b": []byte("lost")}}
	want := map[string][]byte{"a": []byte("1"), "a-previous": []byte("0"), "b-previous": []byte("own")}
	if diff := cmp.Diff(want, v.All()); diff != "" {
		t.Errorf("All(): -want, +got:\n%s", diff)
	}
}
