package template

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
	"unicode/utf8"
)

// An Error is why a template could not be rendered. It is shown to users and contains no value.
type Error struct {
	// Template is the name that was passed to Execute.
	Template string
	// Line and Column are the place in the template, from 1; they are 0 if it is unknown. Columns count characters.
	Line, Column int
	// Reason is what is wrong.
	Reason string
}

// Error returns the place of the error and the reason.
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.Template, e.Reason)
	case e.Column == 0:
		return fmt.Sprintf("%s: line %d: %s", e.Template, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s: line %d, column %d: %s", e.Template, e.Line, e.Column, e.Reason)
}

// A failure is an error of this package, whose text contains no value.
type failure struct{ reason string }

func (f *failure) Error() string { return f.reason }

var (
	position = regexp.MustCompile(`^template: :(\d+):(?:(\d+):)? `)

	// harmless matches messages of the parser that contain no part of the template.
	harmless = regexp.MustCompile(`^(unclosed (action|comment|left paren)|unexpected (right paren|EOF)|unterminated (character constant|quoted string|raw quoted string)|` +
		`unexpected \{\{(end|else)\}\}|\{\{(break|continue)\}\} outside \{\{range\}\}|comment ends before closing delimiter|empty command|` +
		`max expression depth exceeded|range can only initialize variables|expected :=|` +
		`too many declarations in \w+|missing value for \w+|` +
		`function "[\pL\pN_]+" not defined|undefined variable "\$[\pL\pN_]*")`)
	// unexpectedIn extracts the place from "unexpected TOKEN in PLACE"; the token might be a literal.
	unexpectedIn = regexp.MustCompile(`^unexpected .* in (\w+(?: \w+)?|\{\{\w+\}\})$`)

	missingKey   = regexp.MustCompile(`no entry for key "([\pL\pN_]+)"$`)
	missingField = regexp.MustCompile(`can't evaluate field ([\pL\pN_]+) in type (.+)$`)
	wrongType    = regexp.MustCompile(`wrong type for value; expected (.+); got (.+)$`)
)

// typeNames are the Go types that errors can name, with their names for users. The text of an error might contain
// values, so only these types are taken from it.
var typeNames = map[string]string{
	"string": "string", "int": "int", "int64": "int64", "float64": "float64", "bool": "bool", "uint32": "uint32",
	"[]interface {}": "list", "[]string": "list of strings", "[]int": "list of ints",
	"map[string]interface {}": "dict", "map[string]string": "map of strings",
	"json.Number": "number", "time.Time": "time", "sprig.certificate": "certificate",
}

// constants are phrases in errors of text/template, with the reasons that replace them.
var constants = []struct{ phrase, reason string }{
	{"range can't iterate over", "range needs a list, a dict or a number"},
	{"to iterate over more than one variable", "range over a number has only one variable"},
	{"nil pointer evaluating", "a value is missing"},
	{"nil data; no entry for key", "a key is missing"},
	{"map has no entry for key", "a key is missing"},
	{"can't evaluate field", "a value has no such field"},
	{"wrong number of args", "a function has the wrong number of arguments"},
	{"wrong type for value", "a value has the wrong type"},
	{"can't give argument to non-function", "a value that is not a function has arguments"},
	{"is not a method but has arguments", "a value that is not a function has arguments"},
	{"error calling len", `function "len" failed: the value has no length`},
	{"overflows int", "a number is too large"},
	{"expected string; found", "an argument must be a string"},
	{"expected integer; found", "an argument must be an integer"},
	{"expected float; found", "an argument must be a number"},
	{"expected bool; found", "an argument must be a boolean"},
	{"nil is not a command", "nil is not a command"},
	{"cannot assign nil", "an argument must not be nil"},
	{"invalid value; expected", "an argument must not be nil"},
}

// parseError converts an error of the parser into one without literals of the template, which might come from a
// Secret.
func parseError(err error) *Error {
	text := err.Error()
	e := &Error{Reason: "the template has a syntax error"}
	m := position.FindStringSubmatch(text)
	if m == nil {
		return e
	}
	e.Line, _ = strconv.Atoi(m[1])
	text = text[len(m[0]):]
	switch in := unexpectedIn.FindStringSubmatch(text); {
	case harmless.MatchString(text):
		e.Reason = harmless.FindString(text)
	case in != nil:
		e.Reason = "unexpected text in " + in[1]
	case strings.Contains(text, "multiple definition of template"):
		e.Reason = "a template is defined twice"
	case strings.HasPrefix(text, "bad number syntax"):
		e.Reason = "bad number syntax"
	}
	return e
}

// explain converts an error of an execution into one without values.
func (rw *rewriter) explain(err error) *Error {
	e := &Error{Reason: "the template failed"}
	text := err.Error()
	if m := position.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		column, _ := strconv.Atoi(m[2])
		e.Line, e.Column = place(rw.text, offset(rw.text, line, column))
	}
	var f *failure
	if errors.As(err, &f) {
		e.Reason = f.reason
		return e
	}
	var missing *noKeyError
	if errors.As(err, &missing) {
		e.Reason = missing.Error()
		if slices.Contains(rw.fields, missing.name) {
			e.Reason = fmt.Sprintf("there is no key %q", missing.name)
		}
		return e
	}
	if reason := rw.named(text); reason != "" {
		e.Reason = reason
		return e
	}
	for _, c := range constants {
		if strings.Contains(text, c.phrase) {
			e.Reason = c.reason
			break
		}
	}
	return e
}

// named returns a reason that names a key, a field or types; empty if there is none. It shows a name only if it is
// that of a field in the template, because the text of the error might contain a value.
func (rw *rewriter) named(text string) string {
	if m := missingKey.FindStringSubmatch(text); m != nil && slices.Contains(rw.fields, m[1]) {
		return fmt.Sprintf("there is no key %q", m[1])
	}
	if m := missingField.FindStringSubmatch(text); m != nil && slices.Contains(rw.fields, m[1]) && typeNames[m[2]] != "" {
		return fmt.Sprintf("a value of the type %s has no field %q", typeNames[m[2]], m[1])
	}
	if m := wrongType.FindStringSubmatch(text); m != nil && typeNames[m[1]] != "" && typeNames[m[2]] != "" {
		if typeNames[m[1]] == "dict" && m[2] == "string" {
			return "an argument must be a dict, not a string; decode it first with fromJson or fromYaml"
		}
		return fmt.Sprintf("an argument must be of the type %s, not %s", typeNames[m[1]], typeNames[m[2]])
	}
	return ""
}

// offset returns the position, in bytes from 0, of a column in a line, which counts from 1.
func offset(text string, line, column int) parse.Pos {
	start := 0
	for range line - 1 {
		start += strings.IndexByte(text[start:], '\n') + 1
	}
	return parse.Pos(min(start+column, len(text)))
}

// place returns the line and column of a position, both from 1.
func place(text string, pos parse.Pos) (line, column int) {
	before := text[:min(max(int(pos), 0), len(text))]
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}
