package provider_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestDecodeMetadata(t *testing.T) {
	cases := map[string]struct{ reason, raw, want string }{
		"None":    {"A target needs no metadata.", "", ""},
		"Good":    {"A known field is accepted.", `{"tags":{"a":"b"}}`, ""},
		"Unknown": {"An unknown field is rejected.", `{"labels":{}}`, `metadata: unknown field "labels"; allowed are tags`},
		"Case":    {"Another case is another field.", `{"Tags":{}}`, `metadata: unknown field "Tags"; allowed are tags`},
		"Twice":   {"A duplicate field is rejected.", `{"tags":{},"tags":{}}`, `metadata: duplicate field "tags"; allowed are tags`},
		"Two":     {"A second object is rejected.", `{}{}`, "metadata: is not one JSON object; allowed are tags"},
		"Type":    {"A value of another type is rejected.", `{"tags":1}`, "metadata.tags: is a number, and must be an object; allowed are tags"},
		"Member":  {"So is that of a member.", `{"tags":{"a":true}}`, "metadata.tags: is true or false, and must be a text; allowed are tags"},
		"List":    {"A list is no object.", `[]`, "metadata: is a list, which is not allowed here; allowed are tags"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var into struct {
				Tags map[string]string `json:"tags"`
			}
			got := ""
			raw := []byte(tc.raw)
			if tc.raw == "" {
				raw = nil
			}
			if err := provider.DecodeMetadata(raw, &into, "tags"); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEncodeJSON(t *testing.T) {
	if got := string(provider.EncodeJSON(map[string]string{"b": "<&>", "a": "ü"})); got != `{"a":"ü","b":"<&>"}` {
		t.Errorf("keys must be sorted, and characters of HTML as they are: %s", got)
	}
}

func TestDecodeStrings(t *testing.T) {
	cases := map[string]struct {
		reason, raw string
		want        map[string]string
	}{
		"Strings": {"All members are returned.", `{"a":"1","b":""}`, map[string]string{"a": "1", "b": ""}},
		"Pair":    {"A surrogate pair is one character.", `{"a":"\ud83d\ude00"}`, map[string]string{"a": "😀"}},
		"Empty":   {"An object can have no member.", `{}`, map[string]string{}},
		"Null":    {"Null is no object.", `null`, nil},
		"Member":  {"Null is no string, and not an empty one.", `{"a":null}`, nil},
		"Number":  {"A number is no string.", `{"a":1}`, nil},
		"Twice":   {"It is unclear which of two members counts.", `{"a":"1","a":"2"}`, nil},
		"Half":    {"Half of a surrogate pair is no text.", `{"a":"\ud800"}`, nil},
		"Bytes":   {"Bytes that are not UTF-8 are no text.", "{\"a\":\"\xff\"}", nil},
		"More":    {"A second value is rejected.", `{}{}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := provider.DecodeStrings([]byte(tc.raw))
			if ok != (tc.want != nil) {
				t.Errorf("%s\nDecodeStrings(...): %t", tc.reason, ok)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
