package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKept attempts to keep maps, with and without a bound.
func TestKept(t *testing.T) {
	const rest = ` outlives a walk; say in its comment what limits its entries, as in "Bound: one per store."; remove what a tenant no longer names`
	locked := func(fields string) string { return "type T struct {\n\tmu sync.Mutex\n" + fields + "\n}" }
	cases := map[string]struct {
		reason string
		source string
		want   []string
	}{
		"Field":     {"A map of a struct with a lock is kept.", locked("\tm map[string]int"), []string{"p.go:4:2: the map m" + rest}},
		"Embedded":  {"An embedded lock is one.", "type T struct {\n\tsync.RWMutex\n\tm map[string]int\n}", []string{"p.go:4:2: the map m" + rest}},
		"Names":     {"Each name of a field is a map.", locked("\ta, b map[string]int"), []string{"p.go:4:2: the map a" + rest, "p.go:4:5: the map b" + rest}},
		"SyncMap":   {"A map that needs no lock is kept.", "type T struct {\n\tm *sync.Map\n}", []string{"p.go:3:2: the map m" + rest}},
		"Anonymous": {"A variable can have the lock itself.", "var v = struct {\n\tsync.Mutex\n\tm map[string]int\n}{}", []string{"p.go:4:2: the map m" + rest}},
		"Variable":  {"A variable outlives everything.", "var m map[string]int", []string{"p.go:2:5: the map m" + rest}},
		"Empty":     {"A variable that begins empty is filled later.", "var m = map[string]int{}", []string{"p.go:2:5: the map m" + rest}},
		"Made":      {"So is one that is made.", "var m = make(map[string]int)", []string{"p.go:2:5: the map m" + rest}},
		"NoBound":   {"A comment without a bound is not enough.", locked("\t// m has the sizes.\n\t// Bound:\n\tm map[string]int"), []string{"p.go:6:2: the map m" + rest}},
		"Bound":     {"A map with a bound is accepted.", locked("\t// m has the sizes.\n\t// Bound: one per store.\n\tm map[string]int"), nil},
		"Table":     {"A variable that is made with its entries is a table.", `var m = map[string]int{"a": 1}`, nil},
		"NoLock":    {"A struct without a lock is of one walk.", "type T struct{ m map[string]int }", nil},
		"Local":     {"A variable of a function ends with it.", "func f() { var m map[string]int; _ = m }", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for path, want := range map[string][]string{"p.go": tc.want, "internal/testenv/p.go": nil} {
				got, err := check(module(map[string]string{path: "package p\n" + tc.source}), true)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\ncheck(%s): -want, +got:\n%s", tc.reason, path, diff)
				}
			}
		})
	}
}
