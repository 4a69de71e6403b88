package template

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type safeError struct{ secret string }

func (e safeError) Error() string { return "cannot use " + e.secret }
func (safeError) Safe() string    { return "the certificate has expired" }

// failing returns an engine with functions that fail in all possible ways.
func failing(t testing.TB) *Engine {
	t.Helper()
	e, err := New(map[string]Function{
		"safe":    {Call: func(s string) (string, error) { return "", safeError{s} }},
		"wrapped": {Call: func(s string) (string, error) { return "", fmt.Errorf("with %s: %w", s, safeError{s}) }},
		"unsafe":  {Call: func(s string) (string, error) { return "", errors.New(s) }},
		"panics":  {Call: func(s string) string { panic(s) }},
		"breaks":  {Call: func(s string) string { return s[len(s):][0:1] }},
		"panicky": {Call: func(s string) string { panic(safeError{s}) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestErrors(t *testing.T) {
	cases := map[string]struct {
		text string
		want Error
	}{
		"a missing key":             {"a\n  {{ .missing }}", Error{Line: 2, Column: 6, Reason: `there is no key "missing"`}},
		"a missing key of several":  {"{{ (fromJson .json).a.nope.b }}", Error{Line: 1, Column: 14, Reason: `there is no key "nope"`}},
		"a missing key, after é":    {"é{{ .missing }}", Error{Line: 1, Column: 5, Reason: `there is no key "missing"`}},
		"a missing key, of $":       {"{{ $.missing }}", Error{Line: 1, Column: 5, Reason: `there is no key "missing"`}},
		"a missing key, defined":    {"{{define \"a\"}}\n{{ .missing }}{{end}}{{template \"a\" .}}", Error{Line: 2, Column: 4, Reason: `there is no key "missing"`}},
		"a field of a text":         {"{{ .user.name }}", Error{Line: 1, Column: 9, Reason: `a value of the type string has no field "name"`}},
		"a range over a text":       {"{{ range .user }}{{ end }}", Error{Line: 1, Column: 10, Reason: "range needs a list, a dict or a number"}},
		"a text for a number":       {`{{ repeat "x" .user }}`, Error{Line: 1, Column: 11, Reason: "an argument must be an integer"}},
		"a text for a dict":         {`{{ hasKey .user "x" }}`, Error{Line: 1, Column: 11, Reason: "an argument must be a dict, not a string; decode it first with fromJson or fromYaml"}},
		"a number for a text":       {`{{ upper (len .user) }}`, Error{Line: 1, Column: 15, Reason: "an argument must be of the type string, not int"}},
		"too few arguments":         {"{{ .user }}\n{{ repeat 1 }}", Error{Line: 2, Column: 4, Reason: `function "repeat" needs 2 arguments, not 1`}},
		"too few arguments, piped":  {"{{ 1 | dateInZone 1 }}", Error{Line: 1, Column: 8, Reason: `function "dateInZone" needs 3 arguments, not 2`}},
		"too few, variadic":         {"{{ printf }}", Error{Line: 1, Column: 4, Reason: `function "printf" needs at least 1 arguments, not 0`}},
		"too few, in parentheses":   {"{{ upper (lower) }}", Error{Line: 1, Column: 11, Reason: `function "lower" needs 1 arguments, not 0`}},
		"too few, as an argument":   {"{{ upper lower }}", Error{Line: 1, Column: 10, Reason: `function "lower" needs 1 arguments, not 0`}},
		"too few, with a field":     {"{{ lower.x }}", Error{Line: 1, Column: 4, Reason: `function "lower" needs 1 arguments, not 0`}},
		"the first of two mistakes": {"{{ repeat 1 }}\n{{ upper }}", Error{Line: 1, Column: 4, Reason: `function "repeat" needs 2 arguments, not 1`}},
		"a function fails":          {"\n\n{{ .user | mustToDate \"2006\" }}", Error{Line: 3, Column: 12, Reason: `function "mustToDate" failed`}},
		"a function panics":         {`{{ panics .user }}`, Error{Line: 1, Column: 4, Reason: `function "panics" failed`}},
		"a function breaks":         {`{{ breaks .user }}`, Error{Line: 1, Column: 4, Reason: `function "breaks" failed`}},
		"an error is safe":          {`{{ safe .user }}`, Error{Line: 1, Column: 4, Reason: `function "safe": the certificate has expired`}},
		"an error wraps a safe one": {`{{ wrapped .user }}`, Error{Line: 1, Column: 4, Reason: `function "wrapped": the certificate has expired`}},
		"an error is not safe":      {`{{ unsafe .user }}`, Error{Line: 1, Column: 4, Reason: `function "unsafe" failed`}},
		"division by zero":          {`{{ div 1 0 }}`, Error{Line: 1, Column: 4, Reason: `function "div" failed`}},
		"hexadecimal":               {`{{ hexdec .user }}`, Error{Line: 1, Column: 4, Reason: `function "hexdec": the value is not hexadecimal`}},
		"base64":                    {`{{ b64dec "?" }}`, Error{Line: 1, Column: 4, Reason: `function "b64dec": the value is not base64`}},
		"base32":                    {`{{ b32dec "?" }}`, Error{Line: 1, Column: 4, Reason: `function "b32dec": the value is not base32`}},
		"a long password":           {`{{ repeat 73 "x" | bcrypt }}`, Error{Line: 1, Column: 20, Reason: `function "bcrypt": the password is longer than 72 bytes`}},
		"a user with a colon":       {`{{ htpasswd "a:b" "c" }}`, Error{Line: 1, Column: 4, Reason: `function "htpasswd": the user name has a colon`}},
		"a kind of password":        {`{{ derivePassword 1 "x" "a" "b" "c" }}`, Error{Line: 1, Column: 4, Reason: `function "derivePassword": the kind of password must be maximum, long, medium, short, basic or pin`}},
		"a kind of key":             {`{{ genPrivateKey "x" }}`, Error{Line: 1, Column: 4, Reason: `function "genPrivateKey": the kind of key must be rsa, ecdsa or ed25519`}},
		"YAML":                      {`{{ fromYaml "{" }}`, Error{Line: 1, Column: 4, Reason: `function "fromYaml": the value is not YAML`}},
		"a zone":                    {`{{ dateInZone "" now "Europe/Berlin" }}`, Error{Line: 1, Column: 4, Reason: `function "dateInZone": the zone must be UTC or Local`}},
		"fail":                      {`{{ fail .user }}`, Error{Line: 1, Column: 4, Reason: `function "fail": the template stopped with an error; its message is not shown, because it can contain a value`}},
		"index":                     {`{{ index .user 99 }}`, Error{Line: 1, Column: 4, Reason: `function "index": there is no such element`}},
		"index of the data":         {`{{ index . "my-key" }}`, Error{Line: 1, Column: 4, Reason: `there is no key "my-key"`}},
		"index of a variable":       {`{{ $x := . }}{{ index $x "my-key" | upper }}`, Error{Line: 1, Column: 17, Reason: `there is no key "my-key"`}},
		"index of the data, piped":  {`{{ "my-key" | index $ }}`, Error{Line: 1, Column: 15, Reason: `there is no key "my-key"`}},
		"index, after a condition":  {`{{ if index . "my-key" }}{{ else }}{{ index . "my-key" }}{{ end }}`, Error{Line: 1, Column: 39, Reason: `there is no key "my-key"`}},
		"index of what is split":    {`{{ with split "," "a" }}{{ index . "_1" }}{{ end }}`, Error{Line: 1, Column: 28, Reason: `there is no key "_1"`}},
		"compare":                   {`{{ eq .user 1 }}`, Error{Line: 1, Column: 4, Reason: `function "eq": values of different types cannot be compared`}},
		"wrong number, native":      {`{{ not }}`, Error{Line: 1, Column: 4, Reason: "a function has the wrong number of arguments"}},
		"is not a function":         {`{{ .user 1 }}`, Error{Line: 1, Column: 4, Reason: "a value that is not a function has arguments"}},
		"a template not defined":    {`x{{ template "x" }}`, Error{Line: 1, Column: 14, Reason: "the template calls a template that is not defined"}},

		"unclosed action":       {"\n{{ .user ", Error{Line: 2, Reason: "unclosed action"}},
		"unclosed action, line": {"{{ .user\n", Error{Line: 2, Reason: "unclosed action"}},
		"unclosed text":         {`{{ "secret }}`, Error{Line: 1, Reason: "unterminated quoted string"}},
		"unknown function":      {"\n{{ nope .user }}", Error{Line: 2, Reason: `function "nope" not defined`}},
		"unknown variable":      {"{{ $x }}", Error{Line: 1, Reason: `undefined variable "$x"`}},
		"no end":                {"{{ if .user }}", Error{Line: 1, Reason: "unexpected EOF"}},
		"an end too many":       {"{{ end }}", Error{Line: 1, Reason: "unexpected {{end}}"}},
		"a literal":             {`{{ .user "x" := }}`, Error{Line: 1, Reason: "unexpected text in operand"}},
		"a number":              {`{{ 1secret }}`, Error{Line: 1, Reason: "bad number syntax"}},
		"defined twice":         {`{{ define "a" }}x{{ end }}{{ define "a" }}x{{ end }}`, Error{Line: 1, Reason: "a template is defined twice"}},
		"nothing":               {`{{ }}`, Error{Line: 1, Reason: "missing value for command"}},
		"break":                 {`{{ break }}`, Error{Line: 1, Reason: "{{break}} outside {{range}}"}},
		"a character":           {`{{ § }}`, Error{Line: 1, Reason: "the template has a syntax error"}},
	}
	e := failing(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := e.Execute("data[a:1:2]", c.text, values, NewBudget())
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("Execute(%q): %v, want an *Error", c.text, err)
			}
			c.want.Template = "data[a:1:2]"
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("Execute(%q): -want, +got:\n%s", c.text, diff)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*Error{
		"data[a]: why":                   {Template: "data[a]", Reason: "why"},
		"data[a]: line 2: why":           {Template: "data[a]", Line: 2, Reason: "why"},
		"data[a]: line 2, column 3: why": {Template: "data[a]", Line: 2, Column: 3, Reason: "why"},
	} {
		if diff := cmp.Diff(want, e.Error()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
}

// canary is part of each value of TestCanary, and must not be part of any error. It has digits because errors also
// quote numbers.
const canary = "cAnAry7351"

// canaryValues are values that functions are likely to quote.
func canaryValues() []string {
	return []string{
		canary, "7351", "https://" + canary + ":%zz", canary + "://[", "{" + canary, `{"` + canary + `": ` + canary + `}`,
		"a: " + canary + "\n b: " + canary, "&" + canary + " *" + canary, "*" + canary, "!!int " + canary, "-----BEGIN " + canary + "-----",
		"99999999999999999999" + canary, "(" + canary, "[" + canary + "z-a]", canary + "%!d(x)", "%" + canary, "\xff" + canary,
		canary + `: map has no entry for key "` + canary + `"`, canary + ": can't evaluate field " + canary + " in type " + canary,
		"wrong type for value; expected " + canary + "; got " + canary, "template: :1:2: executing: " + canary, "1.2." + canary,
	}
}

// slow matches the functions that are slow for all arguments.
var slow = regexp.MustCompile(`genPrivateKey|bcrypt|htpasswd|derivePassword|(genSelfSignedCert|genCA|genSignedCert) `)

// TestCanary makes every function fail with a value, and searches the errors for the value.
func TestCanary(t *testing.T) {
	e := failing(t)
	templates := []string{
		`{{ range .v }}{{ end }}`, `{{ range $a, $b := 1 | add (.v | len) }}{{ end }}`, `{{ .v.x }}`, `{{ .v.v.v }}`, `{{ .v 1 }}`, `{{ 1 | .v }}`, `{{ index .v .v }}`, `{{ index . .v .v }}`,
		`{{ index (list 1) .v }}`, `{{ (dict .v 1).x }}`, `{{ template .v }}`, `{{ eq .v 1 }}`, `{{ lt (list .v) (list .v) }}`, `{{ eq (dict .v 1) (dict .v 1) }}`, `{{ slice .v 1 }}`, `{{ slice (list 1) .v .v }}`, `{{ len (atoi .v) }}`,
		`{{ (now.Format .v).x }}`, `{{ now.Add .v }}`, `{{ with .v }}{{ .x }}{{ end }}`, `{{ $x := .v }}{{ $x.y }}`, `{{ fromJson .v | toYaml | fail }}`,
		`{{ (mustFromJson .v).x.y }}`, `{{ (fromYaml .v).x.y }}`, `{{ dig .v "x" (dict .v .v) | index 1 }}`, `{{ dig "a" "b" "x" (dict "a" .v) }}`, `{{ genSelfSignedCertWithKey .v (list .v) (list .v) 1 .v }}`,
		`{{ urlJoin (dict "userinfo" .v) }}`, `{{ urlJoin (dict "host" (list .v)) }}`, `{{ genSignedCertWithKey .v nil nil 1 (genCA .v 1) .v }}`, `{{ printf "%z" .v | atoi | .v }}`, `{{ untilStep .v .v .v }}`,
		"{{ `" + canary + "` }} {{ .v.x", "{{ `" + canary + "` `" + canary + "` := }}", `{{ "` + canary, `{{ '` + canary + `' }}`, `{{ 7351` + canary + ` }}`, `{{ define "` + canary + `" }}x{{ end }}{{ define "` + canary + `" }}x{{ end }}`, `{{ template "` + canary + `" }}`,
		`{{ range "` + canary + `" }}{{ end }}`, `{{ 1 "` + canary + `" }}`, `{{ if "` + canary + `" | nope }}`, `{{ break "` + canary + `" }}`, `{{ else "` + canary + `" }}`, `{{ ("` + canary + `").x }}`, `{{ "` + canary + `".x }}`,
	}
	for name := range e.known {
		for _, args := range []string{"", ".v", ".v .v", ".v .v .v", ".v .v .v .v", ".v .v .v .v .v", "1 .v", "(list .v)", "(list .v) .v", ".v (list .v)", "(dict .v .v)", "(dict .v .v) .v", "(dict .v (list .v)) .v", "nil", "nil .v", ".v nil"} {
			templates = append(templates, "{{ ("+name+" "+args+").x.y }}")
		}
	}
	failures := 0
	for _, v := range canaryValues() {
		for _, text := range templates {
			if v != canary && slow.MatchString(text) {
				continue
			}
			_, err := e.Execute("t", text, map[string]string{"v": v}, NewBudget())
			if err == nil {
				continue
			}
			failures++
			shown := err.Error() + fmt.Sprintf("%v %+v %#v %q", err, err, err, err)
			if strings.Contains(shown, canary) || strings.Contains(shown, "7351") {
				t.Errorf("Execute(%q) with %q shows it: %s", text, v, shown)
			}
		}
	}
	if failures < 5_000 {
		t.Errorf("only %d templates failed; the test covers too little", failures)
	}
}
