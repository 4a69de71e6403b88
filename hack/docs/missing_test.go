package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// missingRows match the tables that list what External Secrets Operator has and we do not.
var missingRows = map[string]*regexp.Regexp{
	"docs/project/v1beta1.md":        regexp.MustCompile(`\n\| (.*) \| ESO has them \|`),
	"docs/guides/moving-from-eso.md": regexp.MustCompile(`(?s)\n## What ESO has and we do not\n(.*?)\n## `),
}

// TestMissing checks that nothing that pages list as missing exists: a Kind, or a field of an ExternalSecret.
func TestMissing(t *testing.T) {
	tree := filepath.Join("..", "..")
	kinds, err := loadKinds(tree)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, k := range kinds {
		known[k.Name] = true
		if k.Name == "ExternalSecret" {
			maps.Copy(known, paths("", k.Spec))
		}
	}
	for _, path := range []string{"data[].remoteRef.nullBytePolicy", "nullBytePolicy", "templateFrom[].valuesDecodingStrategy", "UUID"} {
		if !known[path] {
			t.Errorf("%s is not known, so a page could list it as missing", path)
		}
	}
	for page, rows := range missingRows {
		text, err := os.ReadFile(filepath.Join(tree, page)) //nolint:gosec // A file of the tree.
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string(nil), listed(rows, string(text), known)); diff != "" {
			t.Errorf("%s lists as missing what exists: -want, +got:\n%s", page, diff)
		}
	}
}

// listed returns what rows name in the first cells of their table, and is known.
func listed(rows *regexp.Regexp, text string, known map[string]bool) []string {
	var out []string
	for _, found := range rows.FindAllStringSubmatch(text, -1) {
		for line := range strings.SplitSeq(found[1], "\n") {
			first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
			for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
				if known[quoted[1]] && quoted[1] != "data" {
					out = append(out, quoted[1])
				}
			}
		}
	}
	return out
}

// paths returns the paths of the fields of a schema, such as data[].secretKey, and each end of them.
func paths(prefix string, s *schema) map[string]bool {
	out := map[string]bool{}
	for name, field := range s.Properties {
		path := prefix + name
		for end, more := path, true; more; _, end, more = strings.Cut(end, ".") {
			out[end] = true
		}
		for field.Items != nil {
			path, field = path+"[]", field.Items
		}
		maps.Copy(out, paths(path+".", field))
	}
	return out
}
