package property

import (
	"testing"

	"github.com/tidwall/gjson"
)

// FuzzEscape checks that an escaped name is one name, and that a read finds it.
func FuzzEscape(f *testing.F) {
	for _, name := range []string{"a", "a.b", `a\b`, "@this", "#", "[0]", "{a}", "!x", "a*", "..", "é"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		names, query := Split(Escape(name))
		if len(names) != 1 || query || names[0].Text != name || names[0].Unusual && name != "" {
			t.Errorf("Split(Escape(%q)): %+v, query: %t", name, names, query)
		}
	})
}

func TestUnique(t *testing.T) {
	for doc, ok := range map[string]bool{
		`{}`: true, `[]`: true, `"a"`: true, `1`: true, `{"a":1,"b":{"a":1}}`: true, `[{"a":1},{"a":1}]`: true, `{"a":"a","b":"a"}`: true,
		`{"a":["b","b",{"b":1}],"b":"\"b\":"}`: true, `{"a":{"b":1},"c":{"b":1}}`: true, `["a","a"]`: true,
		`{"a":1,"a":1}`: false, `{"a" : 1, "\u0061":2}`: false, `[[{"x":{"a":1,"b":[],"a":{}}}]]`: false, `{"a":{"a":{}},"b":[{}],"a":1}`: false,
	} {
		if !gjson.Valid(doc) {
			t.Fatalf("%q is no JSON", doc)
		}
		if err := Unique([]byte(doc)); (err == nil) != ok {
			t.Errorf("Unique(%q): %v, want ok: %t", doc, err, ok)
		}
	}
}
