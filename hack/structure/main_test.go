package main

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// module returns a file system with files by name.
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
		"Ten":      {"The maximum number of packages is accepted.", "p0/other.go", 0},
		"Eleven":   {"One more package is reported.", "p0/q/q.go", 1},
		"Root":     {"The folder of the module can be a package, too.", "root.go", 1},
		"Tests":    {"A package with only tests is counted.", "q/q_test.go", 1},
		"Internal": {"Internal packages are not counted.", "p0/internal/deep/q.go", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := module(ten)
			m[tc.file] = &fstest.MapFile{Data: []byte("package q")}
			faults, err := check(m, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, len(faults)); diff != "" {
				t.Errorf("%s\ncheck(): %q: -want, +got:\n%s", tc.reason, faults, diff)
			}
		})
	}
}
