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
		"Type":    {"A value of another type is rejected.", `{"tags":1}`, "metadata: cannot unmarshal number into Go struct field .tags of type map[string]string; allowed are tags"},
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
