package splice

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const was = `# First.
apiVersion: old/v1 # the version
kind: Old
metadata: {name: db, labels: {team: "shop"}}
spec:
  # Above the store.
  oldStoreRef: # next to it
    name: prod
    kind: OldStore

  list:
  - a: 1 # one
    b: |
      # no comment
      text
  # Above two.
  - a: 2
  flow: {a: 1, b: [x, y], "c d": 'it''s'}
  # Below.
`

func TestDocument(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason         string
		was, from, to  string // The text, and what of its data becomes what.
		want, wantFrom string // wantFrom is a part of the result; want takes its place. Both are of was.
	}{
		"Value":       {"A value changes in its place.", was, "apiVersion: old/v1 #", "apiVersion: new/v2 #", "apiVersion: new/v2 #", "apiVersion: old/v1 #"},
		"Rename":      {"A key that names the same gets its new name.", was, "oldStoreRef:", "storeRef:", "  storeRef: # next", "  oldStoreRef: # next"},
		"Remove":      {"An entry goes with its line, its comment stays.", was, "  - a: 2\n", "", "  # Above two.\n", "  # Above two.\n  - a: 2\n"},
		"RemoveFirst": {"The next key moves to the dash.", strings.Replace(was, " # one", "", 1), "- a: 1\n    b: |", "- b: |", "  - b: |", "  - a: 1\n    b: |"},
		"Add":         {"A new entry is behind the one before it.", was, "    kind: OldStore\n", "    kind: OldStore\n    more: {x: [1]}\n", "    kind: OldStore\n    more: {x: [1]}\n", "    kind: OldStore\n"},
		"AddItem":     {"A new item is behind the one before it.", was, "  - a: 2\n", "  - a: 2\n  - a: 3\n", "  - a: 2\n  - a: 3\n", "  - a: 2\n"},
		"Flow":        {"An entry in brackets goes with its comma.", was, "a: 1, b: [x, y], ", "b: [x, y], ", "{b: [x, y], ", "{a: 1, b: [x, y], "},
		"FlowLast":    {"So does the last.", was, `, "c d": 'it''s'}`, "}", "[x, y]}", `[x, y], "c d": 'it''s'}`},
		"FlowAdd":     {"A new entry in brackets is in its place.", was, `{name: db, `, `{name: db, namespace: "a, b", `, `{name: db, namespace: "a, b", `, `{name: db, `},
		"FlowItems":   {"A list in brackets is written as a whole.", was, "[x, y]", "[x, z, y]", "[x, z, y]", "[x, y]"},
		"Quotes":      {"Quotes stay.", was, `"shop"`, "mail", `"mail"`, `"shop"`},
		"Kind":        {"An entry of another kind is written as a whole.", was, "list:\n  - a: 1 # one\n    b: |\n      # no comment\n      text\n  # Above two.\n  - a: 2\n", "list: none\n", "  # one\n  # Above two.\n  list: none\n", "  list:\n  - a: 1 # one\n    b: |\n      # no comment\n      text\n  # Above two.\n  - a: 2\n"},
		"Windows":     {"Line ends stay.", strings.ReplaceAll(was, "\n", "\r\n"), "    kind: OldStore\r\n", "    kind: OldStore\n    more: 1\n", "    kind: OldStore\r\n    more: 1\r\n", "    kind: OldStore\r\n"},
		"BOM":         {"So does a byte order mark.", "\ufeffkind: Old\nname: a\n", "kind: Old", "kind: New", "kind: New", "kind: Old"},
		"NoNewline":   {"And the end of the file.", "kind: Old\nspec: {a: 1}", "spec: {a: 1}", "spec: {a: 1}\nmore: 2", "spec: {a: 1}\nmore: 2", "spec: {a: 1}"},
		"Tabs":        {"Tabs in comments do no harm.", "kind: Old #\ta\tb\n#\tc\nname: a\n", "kind: Old", "kind: New", "kind: New", "kind: Old"},
		"Indented":    {"Indented lists get indented items.", "spec:\n    list:\n        - a: 1\n", "- a: 1\n", "- a: 1\n        - b: {c: [1]}\n", "- a: 1\n        - b: {c: [1]}\n", "- a: 1\n"},
		"Anchor":      {"An alias changes with its anchor.", "a: &x {kind: Old}\nb: *x\n", "{kind: Old}", "{kind: New}", "{kind: New}", "{kind: Old}"},
		"Alias":       {"An alias that would not fit becomes a value.", "a: &x {kind: Old}\nb: *x\n", "b: *x", "b: {kind: New}", "b: {kind: New}", "b: *x"},
		"Merge":       {"A merge key stays.", "a: &x {c: 1, d: 2}\nb:\n  <<: *x\n  kind: Old\n", "kind: Old", "kind: New", "kind: New", "kind: Old"},
		"MergeOver":   {"A key over that of a merge key is added.", "a: &x {c: 1, d: 2}\nb:\n  <<: *x\n  kind: Old\n", "  kind: Old\n", "  kind: Old\n  c: 3\n", "  kind: Old\n  c: 3\n", "  kind: Old\n"},
		"MergeRemove": {"A merge key that adds too much is written out.", "a: &x {c: 1, d: 2}\nb:\n  <<: *x\n  kind: Old\n", "  <<: *x\n", "  c: 1\n", "  c: 1\n", "  <<: *x\n"},
		"Long":        {"A long line is not broken.", "kind: Old\ntext: " + strings.Repeat("word ", 60) + "\nspec: {}\n", "spec: {}", "spec: {a: 1}", "spec: {a: 1}", "spec: {}"},
		"Folded":      {"Text over several lines stays.", "text: one\n  two\n\n  three\nfolded: >-\n  a\n  b\n\nkind: Old\n", "kind: Old", "kind: New", "kind: New", "kind: Old"},
		"JSON":        {"JSON stays JSON.", "{\n  \"kind\": \"Old\",\n  \"spec\": {\n    \"a\": \"x<y\"\n  }\n}\n", `"a": "x<y"`, `"a": "x<y", "b": [1, "é"]`, "\"a\": \"x<y\",\n    \"b\": [1,\"é\"]", `"a": "x<y"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := strings.Replace(tc.was, tc.from, tc.to, 1)
			if data == tc.was {
				t.Fatal("nothing changes")
			}
			root, err := parse([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Document([]byte(tc.was), resolve(root), nil)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(strings.Replace(tc.was, tc.wantFrom, tc.want, 1), string(got)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRefused holds that what cannot be edited is an error.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, was, want, err string }{
		"Text":  {"The root is a mapping or a list.", "a", "a: 1", "the document is neither a mapping nor a list"},
		"Other": {"Something of the document stays.", "a: 1", "b: {c: 2}", "nothing of the document stays"},
		"Pin":   {"A pinned comment stays where it is.", "a: 1\nb: # pinned here\n  c: 1", "a: 1", "# pinned here is in a part that changes"},
		"Key":   {"Keys are strings.", "a: 1\n? [b]\n: 2", "a: 2", "a key is not a string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, err := parse([]byte(tc.want))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Document([]byte(tc.was), root, func(c string) bool { return strings.HasPrefix(c, "# pinned") }); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}
