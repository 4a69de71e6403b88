package main

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

var (
	verdictName = regexp.MustCompile(`(?m)^\t(\w+)\s+Verdict = "(.*)"$`)
	verdictRule = regexp.MustCompile(`(?m)^\t\{"(.*)", func\(.*, (\w+)\},$`)
)

// verdictsOf returns the table of what becomes of something that a PushSecret no longer wants.
func verdictsOf(tree string) (string, error) {
	text, err := os.ReadFile(filepath.Join(tree, "common", "internal", "push", "verdict.go")) //nolint:gosec // A file of the tree.
	if err != nil {
		return "", errors.Wrap(err, "cannot read the verdicts")
	}
	names := map[string]string{}
	for _, m := range verdictName.FindAllStringSubmatch(string(text), -1) {
		names[m[1]] = m[2]
	}
	rows := ""
	rules := verdictRule.FindAllStringSubmatch(string(text), -1)
	for _, m := range rules {
		rows += "| " + m[1] + " | " + names[m[2]] + " |\n"
	}
	if len(rules) == 0 || len(names) == 0 {
		return "", errors.New("common/internal/push/verdict.go has no rules")
	}
	return rows, nil
}
