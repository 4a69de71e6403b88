package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTexts checks that the check reads prose, and nothing else, in each kind of file.
func TestTexts(t *testing.T) {
	long := strings.Repeat("word ", longest+1)
	cases := map[string]struct {
		reason, path, content string
		want                  []string
	}{
		"Comment":        {"A comment is read over the ends of its lines.", "a.go", "package a\n\n// It is in\n// step with b.\n", []string{`a.go:3: "in step": in sync, out of sync`}},
		"DocComment":     {"A doc comment begins with the name that it is for.", "a.go", "package a\n\n// mend returns a.\nfunc mend() {}\n", nil},
		"NotItsName":     {"That is no excuse for the rest of it.", "a.go", "package a\n\n// mend mends a.\nfunc mend() {}\n", []string{`a.go:3: "mends": fix, repair, restore`}},
		"Code":           {"Code in a comment is no prose.", "a.go", "package a\n\n// It has `nobody`.\n//\n//\tnobody\n", nil},
		"Directive":      {"A directive is no prose.", "a.go", "package a\n\n//go:generate nobody\n// +kubebuilder:nobody=nobody\n", nil},
		"Message":        {"A literal of several words is a message.", "a.go", "package a\n\nconst a = \"what nobody reads\"\n", []string{`a.go:3: "nobody": name the user, the operator or the object`}},
		"TestName":       {"The name of a test is read word by word.", "a_test.go", "package a\n\nfunc TestNobodyReads() {}\n", []string{`a_test.go:3: "nobody": name the user, the operator or the object`}},
		"CaseName":       {"The name of a case is, too.", "a_test.go", "package a\n\nvar a = []string{\"NobodyReads\"}\n", []string{`a_test.go:3: "nobody": name the user, the operator or the object`}},
		"Page":           {"A page is read, without its blocks and code.", "a.md", "# Nobody\n\n```sh\nnobody\n```\n\nIt has `nobody`.\n", []string{`a.md:1: "Nobody": name the user, the operator or the object`}},
		"InItem":         {"An indented paragraph of an item is none.", "a.md", "- It has:\n\n    nobody\n", []string{`a.md:3: "nobody": name the user, the operator or the object`}},
		"Subject":        {"A sentence does not.", "a.md", "What is installed stays.\n", []string{`a.md:1: "What is installed stays.": start with the subject, not with a clause`}},
		"Values":         {"Comments of YAML are read.", "a.yaml", "a: nobody # nobody\n", []string{`a.yaml:1: "nobody": name the user, the operator or the object`}},
		"Notes":          {"The text of a template is read, its actions are not.", "NOTES.txt", "{{ nobody }}\nnobody\n", []string{`NOTES.txt:2: "nobody": name the user, the operator or the object`}},
		"Template":       {"In other templates only comments are prose.", "_a.tpl", "{{/* It has nobody. */}}\na: {{ b }}nobody\n", []string{`_a.tpl:1: "nobody": name the user, the operator or the object`}},
		"Long":           {"A long sentence is one.", "a.md", "\n" + long + "\n", []string{"a.md:2: a sentence of 36 words, at most 35 are allowed: " + long[:60] + "…"}},
		"Generated":      {"The source of a generated file is checked instead.", "a/crds/a.yaml", "# nobody\n", nil},
		"Allowed":        {"An exception allows it in its file.", "allowed.md", "It is called nobody there.\n", nil},
		"AllowedOnce":    {"An exception does not hold for other sentences.", "allowed.md", "It is called nobody there.\nIt is for nobody.\n", []string{`allowed.md:2: "nobody": name the user, the operator or the object`}},
		"AllowedNotHere": {"An exception does not hold in other files.", "a.md", "It is called nobody there.\n", []string{`a.md:1: "nobody": name the user, the operator or the object`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := check{phrases: phrases(phraseList), exceptions: exceptions("allowed.md\tcalled nobody\tit is a name\n")}
			c.file(tc.path, []byte(tc.content))
			if diff := cmp.Diff(tc.want, c.found); diff != "" {
				t.Errorf("%s\nwhat is found: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnused checks that an exception without its text is reported.
func TestUnused(t *testing.T) {
	c := check{exceptions: exceptions("a.md\tcalled nobody\tit is a name\n")}
	c.file("a.md", []byte("It is called root.\n"))
	c.unused()
	if diff := cmp.Diff([]string{"hack/words/exceptions.txt: a.md has no such text any more: called nobody"}, c.found); diff != "" {
		t.Errorf("what is found: -want, +got:\n%s", diff)
	}
}

// TestIdentifiers checks that all declarations and paths are read, and that identifiers of other packages are not.
func TestIdentifiers(t *testing.T) {
	const end = ": restore"
	cases := map[string]struct {
		reason, path, content string
		want                  []string
	}{
		"Package":     {"The name of a package is read.", "a/a.go", "package mend\n", []string{"a/a.go:1: mend" + end}},
		"Paths":       {"Folders and files are read, and a package with the name of its folder is not read twice.", "mend/mend_test.go", "package mend_test\n", []string{"mend:1: mend" + end, "mend/mend_test.go:1: mend_test" + end}},
		"Type":        {"Types and fields are read.", "a/a.go", "package a\n\ntype Mend struct {\n\tmended int\n}\n", []string{"a/a.go:3: Mend" + end, "a/a.go:4: mended" + end}},
		"Interface":   {"Methods of interfaces are read.", "a/a.go", "package a\n\ntype b interface{ Mend() }\n", []string{"a/a.go:3: Mend" + end}},
		"Function":    {"Functions, parameters and results are read.", "a/a.go", "package a\n\nfunc mend(mendA int) (mendB int) { return 0 }\n", []string{"a/a.go:3: mend" + end, "a/a.go:3: mendA" + end, "a/a.go:3: mendB" + end}},
		"Variables":   {"Constants and variables are read.", "a/a.go", "package a\n\nconst mendA = 1\n\nvar mendB = 1\n\nfunc b() {\n\tmendC := 1\n\tfor mendD := range mendC {\n\t}\n}\n", []string{"a/a.go:3: mendA" + end, "a/a.go:5: mendB" + end, "a/a.go:8: mendC" + end, "a/a.go:9: mendD" + end}},
		"Use":         {"The use of an identifier is not read.", "a/a.go", "package a\n\nvar b = c.Mend\n", nil},
		"Initialism":  {"An initialism is a word.", "a/a.go", "package a\n\nvar JSONMend, mendJSON, MEND int\n", []string{"a/a.go:3: JSONMend" + end, "a/a.go:3: mendJSON" + end, "a/a.go:3: MEND" + end}},
		"Row":         {"A term can have several words.", "a/a.go", "package a\n\nvar isInStep, stepIn int\n", []string{"a/a.go:3: isInStep: inSync"}},
		"Iterator":    {"The parameter of an iterator has the name that Go gives it.", "a/a.go", "package a\n\nfunc b(yield func(int) bool) {}\n", nil},
		"NoIterator":  {"Other parameters do not.", "a/a.go", "package a\n\nfunc b(yield int) {}\n\nvar yieldB func()\n\nfunc yield() {}\n", []string{"a/a.go:3: yield: defer", "a/a.go:5: yieldB: defer", "a/a.go:7: yield: defer"}},
		"Generated":   {"A generated file is not read.", "a/a.go", "// Code generated by b. DO NOT EDIT.\n\npackage mend\n", nil},
		"Allowed":     {"An exception allows an identifier.", "allowed/a.go", "package allowed\n\nvar mend int\n", nil},
		"AllowedOnly": {"It does not allow others.", "allowed/a.go", "package allowed\n\nvar mendB int\n", []string{"allowed/a.go:3: mendB" + end}},
		"NoGo":        {"Other files are not read.", "mend.md", "# Mend\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newIdentifierCheck("mend, mended\trestore\nin step\tinSync\nyield\tdefer\n", "allowed/\tmend\tit is a name\n")
			c.file(tc.path, []byte(tc.content))
			if diff := cmp.Diff(tc.want, c.report(false)); diff != "" {
				t.Errorf("%s\nwhat is found: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestIdentifierLists checks that the lists are complete, and that unused exceptions are reported.
func TestIdentifierLists(t *testing.T) {
	if c := newIdentifierCheck(identifierList, identifierExceptionList); len(c.terms) == 0 || len(c.exceptions) == 0 {
		t.Error("a list is empty")
	}
	c := newIdentifierCheck("mend\trestore\nfight\tconflict\n", "b/\tmend\tit is a name\n")
	c.file("a/a.go", []byte("package a\n\nvar mend, fight, fightB int\n"))
	want := []string{
		"a/a.go:3: mend: restore", "a/a.go:3: fight: conflict", "a/a.go:3: fightB: conflict",
		"hack/words/identifierexceptions.txt: b/ has no such identifier any more: mend",
	}
	if diff := cmp.Diff(want, c.report(true)); diff != "" {
		t.Errorf("report: -want, +got:\n%s", diff)
	}
}
