package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// assistants is the data of the text for AI assistants (https://llmstxt.org).
type assistants struct {
	tree   string
	Groups []group
	// Products are what the stores read, as in a sentence.
	Products string
}

// Example returns the objects of the given Kinds in a tested example of a module.
func (a assistants) Example(module, file string, kinds ...string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(a.tree, module, "manifests", "examples", file)) //nolint:gosec // A file of the tree.
	if err != nil {
		return "", err
	}
	var out []string
	for object := range strings.SplitSeq(string(raw), "\n---\n") {
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(object), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
		if slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(lines, "kind: "+kind) }) {
			out = append(out, strings.Join(lines, "\n"))
		}
	}
	if len(out) < len(kinds) {
		return "", errors.Errorf("%s of %s has no objects of the Kinds %s", file, module, strings.Join(kinds, ", "))
	}
	return strings.Join(out, "\n---\n"), nil
}
