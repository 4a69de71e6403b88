package property

import "testing"

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
