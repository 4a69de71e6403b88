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
		"Empty":   {"Every answer can say more.", `{}`, `{` + more + `}`},
		"Scalars": {"What is there stays, to the digit.", `{"Size":1.50,"Text":"<&>"}`, `{"Size":1.50,"Text":"<&>",` + more + `}`},
		"List":    {"Elements of a list are messages.", `{"Secrets":[{"Name":"a"},"b",null]}`, `{"Secrets":[{"Name":"a",` + more + `},"b",null],` + more + `}`},
		"Map":     {"An object that is no element may be a map.", `{"Tags":{"a":"b"}}`, `{"Tags":{"a":"b"},` + more + `}`},
		"Deep":    {"Lists may be anywhere.", `{"Parameter":{"Tags":[{}]}}`, `{"Parameter":{"Tags":[{` + more + `}]},` + more + `}`},
		"Value":   {"A secret's value is the user's.", `{"data":{"data":{"c4n4ry":"a","list":[{}]}}}`, `{"data":{"data":{"c4n4ry":"a","list":[{}]}},` + more + `}`},
		"NoJSON":  {"What is no object is not to be changed.", `[]`, ""},
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
	const field = "\x82\xd3\x0e\x17added by a newer server" // 30000, a text of 23 bytes
	cases := map[string]struct {
		reason, answer, want string
	}{
		"None":       {"A refusal has no messages.", "", ""},
		"Empty":      {"An empty message can say more.", "\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x1b" + field},
		"Two":        {"So can each of several.", "\x00\x00\x00\x00\x01a\x00\x00\x00\x00\x01b", "\x00\x00\x00\x00\x1ca" + field + "\x00\x00\x00\x00\x1cb" + field},
		"Compressed": {"Where there is no telling nothing is changed.", "\x01\x00\x00\x00\x01a", "error"},
		"Cut":        {"Nor where an answer is no answer.", "\x00\x00\x00\x00\x02a", "error"},
		"CutHead":    {"Nor where an answer is no answer.", "\x00\x00", "error"},
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
