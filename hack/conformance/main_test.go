package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPage reads the output of tests, and compares the rows of the tables.
func TestPage(t *testing.T) {
	all, err := parse([]byte(`=== RUN   TestConformance
    conformance.go:150: conformance result: {"kind":"B","service":"s 1","capability":"Read","passed":40,"without":{"find/tags":"no tags"}}
    generates.go:70: conformance result: {"kind":"A","service":"s","capability":"Generate","passed":1,"failed":0}
    generates.go:70: conformance result: {"kind":"A","service":"s","capability":"Generate","passed":1,"failed":0}
    conformance.go:150: conformance result: {"kind":"B","service":"s 1","capability":"Find","passed":3,"failed":2}
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	page := write(all, time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC))
	var rows []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| `") || strings.HasPrefix(line, "Results") {
			rows = append(rows, strings.TrimSpace(line))
		}
	}
	want := []string{
		"Results of 2026-11-24:",
		"| `A` | s | – | – | – | – | – | – | – | 2 | – |",
		"| `B` | s 1 | 40 | – | **2 of 5 failed** | – | – | – | – | – | – |",
		"| `B` | s 1 | find/tags | no tags |",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, err := parse([]byte("conformance result: {")); err == nil {
		t.Error("a damaged result is no error")
	}
}

// TestEveryKindHasARow compares the page with the Kinds of all modules. A cluster Kind has the row of its Kind.
func TestEveryKindHasARow(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	modules, err := ownModules("../..")
	if err != nil || len(modules) == 0 {
		t.Fatalf("modules %v: %v", modules, err)
	}
	for _, m := range modules {
		crds, err := filepath.Glob(filepath.Join(m, "manifests", "crds", "*.yaml"))
		if err != nil || len(crds) == 0 {
			t.Fatalf("CRDs of %s: %v, %v", m, crds, err)
		}
		for _, f := range crds {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			kind := string(ofKind.FindSubmatch(raw)[1])
			if !strings.HasPrefix(kind, "Cluster") && !strings.Contains(string(page), "| `"+kind+"` |") {
				t.Errorf("%s has no row: set Kind and Service of its conformance.Harness, or Service of its operatortest.Generation, and run make conformance", kind)
			}
		}
	}
}

var ofKind = regexp.MustCompile(`(?m)^    kind: (\w+)$`)
