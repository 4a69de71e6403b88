package conformance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewerJSON(t *testing.T) {
	const more = `"` + unknownMember + `":` + unknownValue
	cases := map[string]struct {
		reason, answer, want string
	}{
		"Empty":   {"Any object can get a member.", `{}`, `{` + more + `}`},
		"Scalars": {"Existing members do not change, including the format of numbers.", `{"Size":1.50,"Text":"<&>"}`, `{"Size":1.50,"Text":"<&>",` + more + `}`},
		"List":    {"Elements of a list are messages.", `{"Secrets":[{"Name":"a"},"b",null]}`, `{"Secrets":[{"Name":"a",` + more + `},"b",null],` + more + `}`},
		"Map":     {"An object that is not an element might be a map.", `{"Tags":{"a":"b"}}`, `{"Tags":{"a":"b"},` + more + `}`},
		"Deep":    {"Lists can be at any depth.", `{"Parameter":{"Tags":[{}]}}`, `{"Parameter":{"Tags":[{` + more + `}]},` + more + `}`},
		"Value":   {"The value of a secret does not change.", `{"data":{"data":{"c4n4ry":"a","list":[{}]}}}`, `{"data":{"data":{"c4n4ry":"a","list":[{}]}},` + more + `}`},
		"Top":     {"An answer can be a list of messages.", `[{"a":1},"b"]`, `[{"a":1,` + more + `},"b"]`},
		"NoJSON":  {"An answer that is neither an object nor a list is an error.", `"a"`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newerJSON([]byte(tc.answer))
			if (err != nil) != (tc.want == "") {
				t.Errorf("%s\n%v", tc.reason, err)
			}
			if tc.want == "" {
				return
			}
			if diff := cmp.Diff(string(normal([]byte(tc.want))), string(normal(got))); diff != "" {
				t.Errorf("%s\nnewerJSON(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNewerFrames(t *testing.T) {
	const field = "\x82\xd3\x0e\x17added by a newer server" // It has the number 30000, and a text of 23 bytes.
	cases := map[string]struct {
		reason, answer, want string
	}{
		"None":       {"An error answer has no messages.", "", ""},
		"Empty":      {"An empty message gets a field.", "\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x1b" + field},
		"Two":        {"Each of several messages gets a field.", "\x00\x00\x00\x00\x01a\x00\x00\x00\x00\x01b", "\x00\x00\x00\x00\x1ca" + field + "\x00\x00\x00\x00\x1cb" + field},
		"Compressed": {"A compressed message is an error.", "\x01\x00\x00\x00\x01a", "error"},
		"Cut":        {"A truncated message is an error.", "\x00\x00\x00\x00\x02a", "error"},
		"CutHead":    {"A truncated header is an error.", "\x00\x00", "error"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := newerFrames([]byte(tc.answer))
			got := string(raw)
			if err != nil {
				got = "error"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nnewerFrames(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
