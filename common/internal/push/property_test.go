package push

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/render"
)

func TestProperty(t *testing.T) {
	cases := map[string]struct {
		reason   string
		doc      string
		property string
		was      string // "-" for absent
		set      string // the document after setting it to "v", or the start of the error
		without  string // the document after removing it again
	}{
		"Member":    {"Other members keep their bytes.", `{"a":1.50, "b":"x"}`, "b", "x", `{"a":1.50, "b":"v"}`, `{"a":1.50}`},
		"New":       {"A path creates the objects that it names.", `{}`, "db.password", "-", `{"db":{"password":"v"}}`, `{}`},
		"Sibling":   {"A path goes into objects that exist.", `{"db":{"user":"u"}}`, "db.password", "-", `{"db":{"user":"u","password":"v"}}`, `{"db":{"user":"u"}}`},
		"Literal":   {"A member spelled like the path takes precedence, as in a read.", `{"tls.crt":"q"}`, "tls.crt", "q", `{"tls.crt":"v"}`, `{}`},
		"Escaped":   {"A backslash makes a dot part of the name.", `{}`, `tls\.crt`, "-", `{"tls.crt":"v"}`, `{}`},
		"Number":    {"A number is a name.", `{}`, "0", "-", `{"0":"v"}`, `{}`},
		"Minus":     {"-1 is a name.", `{"-1":"x"}`, "-1", "x", `{"-1":"v"}`, `{}`},
		"NumberIn":  {"A number is a name also inside an object.", `{"l":{"0":"k"}}`, "l.0", "k", `{"l":{"0":"v"}}`, `{}`},
		"List":      {"A member of a list is no property.", `{"l":[1,2]}`, "l.0", "1", `property "l.0": "l" is not a JSON object in the remote secret`, ""},
		"Scalar":    {"A string has no properties.", `{"a":"s"}`, "a.b", "-", `property "a.b": "a" is not a JSON object in the remote secret`, ""},
		"Unicode":   {"Any text can be a name.", `{"ключ":"x"}`, "ключ", "x", `{"ключ":"v"}`, `{}`},
		"Space":     {"A name can contain a space.", `{}`, "a b", "-", `{"a b":"v"}`, `{}`},
		"Escapes":   {"A member can be spelled with escapes.", `{"a\u0062c":"1"}`, "abc", "1", `{"a\u0062c":"v"}`, `{}`},
		"JSONValue": {"A value that is no string is read as its JSON.", `{"a":{"b":[1]}}`, "a", `{"b":[1]}`, `{"a":"v"}`, `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			doc, err := parse([]byte(tc.doc))
			if err != nil {
				t.Fatal(err)
			}
			was, ok := doc.has(tc.property)
			if !ok {
				was = []byte("-")
			}
			set, err := doc.set(tc.property, []byte("v"))
			if err != nil {
				if got := err.Error(); len(got) < len(tc.set) || got[:len(tc.set)] != tc.set {
					t.Errorf("%s\nerror %q, want %q…", tc.reason, got, tc.set)
				}
				return
			}
			without, err := set.without(locate(t, set, tc.property).names)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.was, tc.set, tc.without}, []string{string(was), string(set), string(without)}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckProperty(t *testing.T) {
	for property, ok := range map[string]bool{"a": true, "a.b": true, "a*": true, "\x00": true, "ключ": true, "a\xff": false} {
		if err := checkProperty(property); (err == nil) != ok {
			t.Errorf("checkProperty(%q): %v, want ok: %t", property, err, ok)
		}
	}
}

// FuzzProperty sets and removes properties of arbitrary documents. An ExternalSecret must be able to read a property
// that was set, and nothing else must change.
func FuzzProperty(f *testing.F) {
	f.Add(`{"a":1}`, "b.c", "v")
	f.Add(`{"tls.crt":"x","0":{"1":[]}}`, "0.2", "<&>")
	f.Add(`{}`, `a\.b`, "")
	f.Add(`{"a":{"":{"b":1}},"@id":"x"}`, "a..b", "v")
	f.Add(`{"a":1,"a":2}`, "a", "v")
	f.Fuzz(func(t *testing.T, raw, property, value string) {
		doc, err := parse([]byte(raw))
		if err != nil || checkProperty(property) != nil || len(property) > 500 {
			return
		}
		_, existed := doc.has(property)
		set, err := doc.set(property, []byte(value))
		if err != nil {
			return
		}
		if !json.Valid(set) {
			t.Fatalf("%q with %q set is no JSON: %q", raw, property, set)
		}
		if got, ok := set.has(property); !ok || string(got) != value {
			t.Fatalf("%q with %q set to %q has %q: %s", raw, property, value, got, set)
		}
		if got, err := render.Property(set, property); err != nil || string(got) != value {
			t.Fatalf("an ExternalSecret reads property %q of %q as %q, error %v; want %q", property, set, got, err, value)
		}
		without, err := set.without(locate(t, set, property).names)
		if err != nil {
			t.Fatal(err)
		}
		// Without a literal member, the property can mean a nested one.
		if _, ok := without.has(property); ok && without.path(property) == set.path(property) && !twice(raw) {
			t.Fatalf("%q without %q is %q", set, property, without)
		}
		var before, after map[string]any
		if json.Unmarshal([]byte(raw), &before) != nil || json.Unmarshal(without, &after) != nil {
			t.Fatalf("%q without %q is no object: %q", raw, property, without)
		}
		if !existed && !hollow(before) && !twice(raw) {
			if diff := cmp.Diff(before, after); diff != "" {
				t.Fatalf("%q set and removed: -before, +after:\n%s", property, diff)
			}
		}
	})
}

// hollow reports whether an object contains an empty object. Removing the last property below it also removes it.
func hollow(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, m := range v {
			if o, ok := m.(map[string]any); ok && len(o) == 0 || hollow(m) {
				return true
			}
		}
	case []any:
		for _, m := range v {
			if hollow(m) {
				return true
			}
		}
	}
	return false
}

// twice reports whether a document has a duplicate member; JSON does not define which one counts.
func twice(raw string) bool {
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		return true
	}
	out, err := json.Marshal(v)
	return err != nil || members(raw) != members(string(out))
}

func members(raw string) int {
	n, inText := 0, false
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] == '\\':
			i++
		case raw[i] == '"':
			inText = !inText
		case raw[i] == ':' && !inText:
			n++
		}
	}
	return n
}

func locate(t *testing.T, doc document, property string) location {
	t.Helper()
	p, err := doc.at(property)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPath(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		a, b   string
		same   bool
	}{
		"Literal":   {"A literal member takes precedence over a path.", `{"tls.crt":"v"}`, `tls\.crt`, "tls.crt", true},
		"Nested":    {"Without such a member, a dot separates names.", `{"tls":{"crt":"v"}}`, `tls\.crt`, "tls.crt", false},
		"Both":      {"A literal member takes precedence, also with the nested one.", `{"tls.crt":"v","tls":{"crt":"w"}}`, `tls\.crt`, "tls.crt", true},
		"Letter":    {"A backslash before a letter changes nothing.", `{"ab":"v"}`, "ab", `a\b`, true},
		"Backslash": {"A literal member can have a backslash.", `{"ab":"v","a\\b":"w"}`, "ab", `a\b`, false},
		"Number":    {"A backslash before a number changes nothing.", `{"a":{"0":"v"}}`, "a.0", `a.\0`, true},
		"Absent":    {"Spellings are equal before the member exists.", `{}`, "a.0", `a.\0`, true},
		"Text":      {"Spellings are equal in a value without members.", `text`, "ab", `a\b`, true},
		"Case":      {"Names differ by case.", `{}`, "a", "A", false},
		"Prefix":    {"A member of a member is another place.", `{"a":{"b":"v"}}`, "a", "a.b", false},
		"Query":     {"A query is no member.", `{"a":"v"}`, "a", "a*", false},
		"Escaped":   {"An escaped wildcard is a part of the name.", `{"a*":"v"}`, `a\*`, "a*", true},
		"Whole":     {"No property is the whole secret.", `{"":"v"}`, "", `\`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			doc := document(tc.doc)
			if got := doc.path(tc.a) == doc.path(tc.b); got != tc.same {
				t.Errorf("%s\npath(%q) is %q and path(%q) is %q in %s, want equal: %t", tc.reason, tc.a, doc.path(tc.a), tc.b, doc.path(tc.b), tc.doc, tc.same)
			}
		})
	}
}
