package handoff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// TestSourceID pins the ID: modules of two versions must use the same.
func TestSourceID(t *testing.T) {
	ref := v1alpha1.StoreRef{Kind: "VaultKV", Name: "kv"}
	whole := v1alpha1.StoreRef{APIVersion: "vault.direct-secrets.io/v1alpha1", Kind: "VaultKV", Name: "kv"}
	cases := []struct {
		reason string
		ref    v1alpha1.StoreRef
		read   provider.Read
		want   string
	}{
		{"A key.", ref, provider.Read{Ref: provider.Ref{Key: "a"}}, "4e37d41e4b3e9887"},
		{"Of a version.", ref, provider.Read{Ref: provider.Ref{Key: "a", Version: "1"}}, "9d83ed8d710cc9b2"},
		{"With its metadata.", ref, provider.Read{Ref: provider.Ref{Key: "a", Metadata: true}}, "e883eb694f2de251"},
		{"A search.", ref, provider.Read{Search: provider.Search{Path: "a", Name: "b", Tags: `{"c":"d"}`}}, "7a59463671e61e4f"},
		{"A reference with its group.", whole, provider.Read{Ref: provider.Ref{Key: "a"}}, "b4cdbe648f550629"},
	}
	seen := map[string]string{}
	for _, tc := range cases {
		got := SourceID(tc.ref, tc.read)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("\n%s\nSourceID(): -want, +got:\n%s", tc.reason, diff)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%q and %q have one ID", tc.reason, other)
		}
		seen[got] = tc.reason
	}
}

// TestReadSurvivesPart checks that a read is the same after it was stored in a part.
func TestReadSurvivesPart(t *testing.T) {
	ref, read := v1alpha1.StoreRef{Kind: "VaultKV", Name: "kv"}, provider.Read{Ref: provider.Ref{Key: "a"}}
	cases := map[string]struct {
		reason string
		answer provider.Answer
		// entry is the expected entry in the record. want is the expected answer; if nil, the same as answer.
		entry string
		want  *provider.Answer
		err   error
	}{
		"Value":       {"Bytes, version and metadata are stored.", provider.Answer{Value: provider.Value{Key: "a", Data: []byte("\xff\x00x"), Version: "3", Metadata: map[string]string{"k": "v"}}}, "3", nil, nil},
		"NoVersion":   {"Not every provider has versions.", provider.Answer{Value: provider.Value{Key: "a", Data: []byte("x")}}, Found, nil, nil},
		"LongVersion": {"A version that is too long for an annotation is stored with the value only.", provider.Answer{Value: provider.Value{Key: "a", Version: strings.Repeat("v", 65)}}, Found, nil, nil},
		"Search": {
			"The order in which a provider answers has no meaning.", provider.Answer{Found: []provider.Value{{Key: "b", Data: []byte("2")}, {Key: "a", Data: []byte("1"), Version: "v"}}}, Found,
			&provider.Answer{Found: []provider.Value{{Key: "a", Data: []byte("1"), Version: "v"}, {Key: "b", Data: []byte("2")}}}, nil,
		},
		"Empty":    {"A secret may be empty.", provider.Answer{}, Found, nil, nil},
		"NotFound": {"A definite NotFound is an answer.", provider.Answer{Err: provider.NewError(provider.NotFound, "no such secret")}, NotFound, nil, nil},
		"Denied":   {"Any other error is no answer.", provider.Answer{Err: provider.NewError(provider.Denied, "no")}, "", nil, provider.NewError(provider.Denied, "no")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, entries, err := Pack([]render.Source{{Store: ref, Read: read}}, func(render.Source) provider.Answer { return tc.answer })
			if diff := cmp.Diff(tc.err, err); diff != "" || err != nil {
				if diff != "" {
					t.Errorf("\n%s\nPack(): -want error, +got error:\n%s", tc.reason, diff)
				}
				return
			}
			if diff := cmp.Diff(map[string]string{SourceID(ref, read): tc.entry}, entries); diff != "" {
				t.Errorf("\n%s\nPack(): -want, +got:\n%s", tc.reason, diff)
			}
			got, ok := AnswerOf(&corev1.Secret{Type: Type, Data: data}, SourceID(ref, read))
			want := tc.answer
			if tc.want != nil {
				want = *tc.want
			}
			if diff := cmp.Diff(want, got); diff != "" || !ok {
				t.Errorf("\n%s\nAnswerOf(): %t, -want, +got:\n%s", tc.reason, ok, diff)
			}
		})
	}
}

func TestAnswerOfRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		secret corev1.Secret
	}{
		"Type":    {"A Secret of another type is no part.", corev1.Secret{Data: map[string][]byte{"id": []byte("{}")}}},
		"Absent":  {"The source is missing.", corev1.Secret{Type: Type}},
		"Garbled": {"The data cannot be decoded.", corev1.Secret{Type: Type, Data: map[string][]byte{"id": []byte("{")}}},
	}
	for name, tc := range cases {
		if a, ok := AnswerOf(&tc.secret, "id"); ok {
			t.Errorf("%s: %s\nAnswerOf(): %v, want none", name, tc.reason, a)
		}
	}
}

func TestPackBounds(t *testing.T) {
	var sources []render.Source
	for i := range 3 {
		sources = append(sources, render.Source{Read: provider.Read{Ref: provider.Ref{Key: fmt.Sprint(i)}}})
	}
	large := func(render.Source) provider.Answer {
		return provider.Answer{Value: provider.Value{Data: make([]byte, 250<<10)}}
	}
	if _, _, err := Pack(sources[:2], large); err != nil {
		t.Errorf("Pack() of 500 KiB: %v", err)
	}
	if _, _, err := Pack(sources, large); provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), "split the ExternalSecret") {
		t.Errorf("Pack() of 750 KiB: %v, want an error of class Invalid with a fix", err)
	}
}

func TestServesRead(t *testing.T) {
	rec := Record{UID: "u", Reads: &Reads{Request: "r", Entries: map[string]string{"id": Found}}}
	cases := map[string]struct {
		reason           string
		rec              Record
		uid, id, request string
		want             bool
	}{
		"Serves":       {"It was read for the object.", rec, "u", "id", "", true},
		"Request":      {"It was read for the requested refresh.", rec, "u", "id", "r", true},
		"EarlierOnly":  {"A later refresh request is not served.", rec, "u", "id", "s", false},
		"OtherObject":  {"It does not serve another object.", rec, "v", "id", "", false},
		"OtherSource":  {"It does not serve another source.", rec, "u", "other", "", false},
		"NothingRead":  {"A part of generated values has no reads.", Record{UID: "u"}, "u", "id", "", false},
		"NotFoundToo":  {"A result of NotFound counts as read.", Record{UID: "u", Reads: &Reads{Entries: map[string]string{"id": NotFound}}}, "u", "id", "", true},
		"EmptyEntries": {"A part without entries serves nothing.", Record{UID: "u", Reads: &Reads{}}, "u", "id", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.rec.ServesRead(types.UID(tc.uid), tc.id, tc.request); got != tc.want {
				t.Errorf("\n%s\nServesRead(): %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestReadsCompatible decodes a part in the format of the first version, which must stay readable.
func TestReadsCompatible(t *testing.T) {
	s := &corev1.Secret{Type: Type, Data: map[string][]byte{"id": []byte(`{"value":{"key":"a","data":"b25l","version":"3","metadata":{"k":"v"},"later":1},"later":1}`)}}
	s.Annotations = map[string]string{v1alpha1.PartAnnotation: `{"kind":"ExternalSecret","name":"db","uid":"u","reads":{"version":"v","hash":"h","entries":{"id":"3"},"request":"r","metadata":"m","labels":["l"],"at":"2030-01-01T12:00:00Z","next":"2030-01-01T12:00:00Z","later":1}}`}
	rec, ok := Of(s.Annotations)
	want := Reads{Version: "v", Hash: "h", Entries: map[string]string{"id": "3"}, Request: "r", Metadata: "m", Labels: []string{"l"}, At: noon, Next: noon}
	if diff := cmp.Diff(&want, rec.Reads); diff != "" || !ok {
		t.Errorf("Of(): %t, -want, +got:\n%s", ok, diff)
	}
	a, ok := AnswerOf(s, "id")
	if diff := cmp.Diff(provider.Answer{Value: provider.Value{Key: "a", Data: []byte("one"), Version: "3", Metadata: map[string]string{"k": "v"}}}, a, cmpopts.EquateErrors()); diff != "" || !ok {
		t.Errorf("AnswerOf(): %t, -want, +got:\n%s", ok, diff)
	}
}
