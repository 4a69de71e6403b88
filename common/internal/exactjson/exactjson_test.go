package exactjson

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   string
		want   string
	}{
		"Object":     {"each name occurs once", `{"a":{"b":1},"b":[{"a":1},{"a":2}],"":null}`, ""},
		"Scalar":     {"a document can be a scalar", ` "a" `, ""},
		"Nested":     {"names of nested objects are separate", `{"a":{"a":{"a":"a"}},"b":"a"}`, ""},
		"Value":      {"a value can equal a name", `{"a":"b","b":"a"}`, ""},
		"Twice":      {"two members have one name", `{"a":1,"b":2,"a":3}`, `it is JSON with two members "a" in one object; store each member once`},
		"TwiceDeep":  {"an inner object counts as well", `{"x":[1,{"y":{"z":[],"z":[]}}]}`, `it is JSON with two members "z" in one object; store each member once`},
		"AfterInner": {"the names of an outer object are kept", `{"a":{"x":1},"b":[],"a":{}}`, `it is JSON with two members "a" in one object; store each member once`},
		"Escaped":    {"an escaped name is the same name", `{"a":1,"\u0061":2}`, `it is JSON with two members "a" in one object; store each member once`},
		"Syntax":     {"text is not JSON", `{"a"}`, ErrSyntax.Error()},
		"Two":        {"two documents are not one", `{} {}`, ErrSyntax.Error()},
		"Empty":      {"nothing is not JSON", ``, ErrSyntax.Error()},
		"Bytes":      {"bytes are not text", "\"\xff\"", ErrText.Error()},
		"High":       {"half a pair is not text", `"\ud800"`, ErrText.Error()},
		"HighText":   {"half a pair before text is not text", `"\ud800abcdef"`, ErrText.Error()},
		"HighHigh":   {"two first halves are not text", `"\ud800\ud800"`, ErrText.Error()},
		"Low":        {"the second half alone is not text", `"x\uDC00"`, ErrText.Error()},
		"Pair":       {"a pair is text", `"\ud83d\ude00\n\\ud800 \u00e9"`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Check([]byte(tc.data)); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nCheck(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	var twice *DuplicateError
	if err := Check([]byte(`{"n":1,"n":1}`)); !errors.As(err, &twice) || twice.Name != "n" {
		t.Errorf("Check() = %v, want the name of the member", err)
	}
}
