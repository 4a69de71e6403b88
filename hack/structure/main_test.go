package main

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// module returns files by their names.
func module(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, content := range files {
		m[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return m
}

// TestPublic counts the packages that others can import.
func TestPublic(t *testing.T) {
	ten := map[string]string{}
	for i := range maxPackages {
		ten[fmt.Sprintf("p%d/p.go", i)] = "package p"
	}
	cases := map[string]struct {
		reason string
		file   string
		want   int
	}{
		"Ten":      {"As many as are allowed.", "p0/other.go", 0},
		"Eleven":   {"One more is too many.", "p0/q/q.go", 1},
		"Root":     {"The folder of the module can be one, too.", "root.go", 1},
		"Tests":    {"A package of tests alone is a room like any other.", "q/q_test.go", 1},
		"Internal": {"What others cannot import may be cut as finely as one likes.", "p0/internal/deep/q.go", 0},
		"Data":     {"Go does not build what is in testdata.", "p0/testdata/q.go", 0},
		"NoGo":     {"A folder without code is no package.", "crds/q.yaml", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := module(ten)
			m[tc.file] = &fstest.MapFile{Data: []byte("package q")}
			faults, err := check(m)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, len(faults)); diff != "" {
				t.Errorf("%s\ncheck(): %q: -want, +got:\n%s", tc.reason, faults, diff)
			}
		})
	}
}
