package template

import (
	"strings"
	"testing"
	texttemplate "text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
)

// TestMethods compares each method with the result of text/template, which calls the method itself.
func TestMethods(t *testing.T) {
	const day, next = `(toDate "2006-01-02" "2020-03-01")`, `(toDate "2006-01-02 15:04" "2020-03-02 01:30")`
	const span = `(` + next + `.Sub ` + day + `)`
	const old, young = `(semver "v1.2.3-rc.1+b7")`, `(semver "1.3.0")`
	cases := map[string][]string{
		"Format": {day + `.Format "02 Jan"`, `"2006" | ` + day + `.Format`}, "UTC": {day + `.UTC`, day + `.UTC.Format "2006"`}, "Local": {day + `.Local.Year`},
		"Year": {day + `.Year`}, "Month": {day + `.Month`, `printf "%d" ` + day + `.Month`}, "Day": {day + `.Day`}, "YearDay": {day + `.YearDay`},
		"Weekday": {day + `.Weekday`}, "Hour": {next + `.Hour`}, "Minute": {next + `.Minute`}, "Second": {next + `.Second`}, "Nanosecond": {next + `.Nanosecond`},
		"Unix": {day + `.Unix`}, "UnixMilli": {day + `.UnixMilli`}, "UnixMicro": {day + `.UnixMicro`}, "UnixNano": {day + `.UnixNano`},
		"Add": {day + `.Add 3600000000000`, day + `.Add ` + span}, "AddDate": {day + `.AddDate 0 -1 3`, `-2 | ` + day + `.AddDate 0 1`}, "Sub": {next + `.Sub ` + day},
		"After": {day + `.After ` + next, next + `.After ` + day}, "Before": {day + `.Before ` + next}, "IsZero": {day + `.IsZero`},
		"Round": {next + `.Round 3600000000000`, span + `.Round 3600000000000`}, "Truncate": {next + `.Truncate 3600000000000`, span + `.Truncate 3600000000000`},
		"Abs": {`(` + day + `.Sub ` + next + `).Abs`}, "Hours": {span + `.Hours`}, "Minutes": {span + `.Minutes`}, "Seconds": {span + `.Seconds`},
		"Milliseconds": {span + `.Milliseconds`}, "Microseconds": {span + `.Microseconds`}, "Nanoseconds": {span + `.Nanoseconds`},
		"Major": {old + `.Major`}, "Minor": {old + `.Minor`}, "Patch": {old + `.Patch`}, "Prerelease": {old + `.Prerelease`},
		"Metadata": {old + `.Metadata`}, "Original": {old + `.Original`},
		"LessThan": {old + `.LessThan ` + young}, "LessThanEqual": {old + `.LessThanEqual ` + old}, "GreaterThan": {old + `.GreaterThan ` + young}, "GreaterThanEqual": {old + `.GreaterThanEqual ` + young},
		"IncMajor": {old + `.IncMajor`, old + `.IncMajor.Minor`}, "IncMinor": {old + `.IncMinor`}, "IncPatch": {old + `.IncPatch`},
		"Compare": {old + `.Compare ` + young, day + `.Compare ` + next}, "Equal": {old + `.Equal ` + old, day + `.Equal ` + next},
		"String": {day + `.String`, span + `.String`, day + `.Month.String`, day + `.Weekday.String`, old + `.String`},
	}
	e := engine(t)
	for name := range methods {
		for _, form := range []string{`{{ %s }}`, `{{ $x := %s }}{{ $x }}`, `{{ print (%s) }}`, `{{ if %s }}yes{{ end }}`} {
			if len(cases[name]) == 0 {
				t.Errorf("no case calls %s", name)
			}
			for _, call := range cases[name] {
				text := strings.ReplaceAll(form, "%s", call)
				var want strings.Builder
				if err := texttemplate.Must(texttemplate.New("t").Funcs(sprig.TxtFuncMap()).Parse(text)).Execute(&want, values); err != nil {
					t.Fatal(err)
				}
				got, err := e.Execute("t", text, values, NewBudget())
				if err != nil {
					t.Errorf("Execute(%q): %v", text, err)
				}
				if diff := cmp.Diff(want.String(), string(got)); diff != "" {
					t.Errorf("Execute(%q): -want, +got:\n%s", text, diff)
				}
			}
		}
	}
}

func TestMethodNames(t *testing.T) {
	data := map[string]string{"Year": "a key", "now": "x"}
	cases := map[string]struct {
		reason, text, want, err string
	}{
		"Key":         {"a key of the data can have the name of a method", `{{ .Year }}`, "a key", ""},
		"KeyOfDict":   {"a key of a dict can have the name of a method", `{{ $d := dict "Format" (dict "x" 1) }}{{ $d.Format.x }}{{ (dict "Year" 2).Year }}`, "12", ""},
		"Variable":    {"a variable can be the data", `{{ $.Year }}`, "a key", ""},
		"Nil":         {"a key can have no value", `{{ (dict "Year" nil).Year }}`, "", `t: line 1, column 4: "Year" is missing or null; use default, or test it with if`},
		"Missing":     {"a missing key is an error", `{{ .Major }}`, "", `t: line 1, column 4: there is no key "Major"`},
		"NoField":     {"a string has neither", `{{ .now.Year }}`, "", `t: line 1, column 4: a value has no field or method "Year"`},
		"Unknown":     {"an unknown method is an error", `{{ now.GobEncode }}`, "", `t: line 1, column 4: a value of the type time has no field "GobEncode"`},
		"Other":       {"a method of another type is an error", `{{ now.Major }}`, "", `t: line 1, column 4: a value has no field or method "Major"`},
		"OfNothing":   {"nil has no method", `{{ (fromJson "null").Year }}`, "", `t: line 1, column 4: a value is missing`},
		"TooFew":      {"a missing argument is an error", `{{ now.Format }}`, "", `t: line 1, column 4: method "Format" needs 1 arguments, not 0`},
		"TooMany":     {"an extra argument is an error", `{{ now.Year 1 }}`, "", `t: line 1, column 4: method "Year" needs 0 arguments, not 1`},
		"Type":        {"an argument of another type is an error", `{{ now.Format 1 }}`, "", `t: line 1, column 4: an argument of method "Format" has the wrong type`},
		"ArgumentNil": {"nil is not a valid argument", `{{ now.Format nil }}`, "", `t: line 1, column 4: an argument of method "Format" has the wrong type`},
		"NoFunction":  {"a value that is not a method takes no arguments", `{{ .Year 1 }}`, "", `t: line 1, column 4: a value that is not a function has arguments`},
	}
	e := engine(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out, failed := e.Execute("t", c.text, data, NewBudget())
			got := ""
			if failed != nil {
				got = failed.Error()
			}
			if diff := cmp.Diff([]string{c.want, c.err}, []string{string(out), got}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}
