package template

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestExecute(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Empty":     {"an empty template writes nothing", "", ""},
		"Text":      {"text does not change", "a {b} c\n", "a {b} c\n"},
		"Value":     {"a value is written", "user: {{ .user }}\n", "user: admin\n"},
		"Dot":       {"the dot is the data", `{{ range $k, $v := . }}{{ if eq $k "user" }}{{ $k }}={{ $v }}{{ end }}{{ end }}`, "user=admin"},
		"Trim":      {"white space is trimmed", "a  {{- .user -}}  b", "aadminb"},
		"Comment":   {"a comment writes nothing", "a{{/* {{ .nope }} */}}b", "ab"},
		"If":        {"conditions select a branch", `{{ if .empty }}a{{ else if eq .user "admin" }}b{{ else }}c{{ end }}`, "b"},
		"With":      {"with sets the dot", `{{ with .user }}{{ . }}{{ else }}no{{ end }}{{ with .empty }}a{{ else with .user }}-{{ . }}{{ end }}`, "admin-admin"},
		"Range":     {"range iterates over all elements", `{{ range $i, $x := splitList "," "a,b,c" }}{{ if eq $x "c" }}{{ break }}{{ end }}{{ if eq $x "a" }}{{ continue }}{{ end }}{{ $i }}{{ $x }}{{ else }}none{{ end }}`, "1b"},
		"RangeElse": {"range over an empty list uses else", `{{ range list }}a{{ else }}none{{ end }}`, "none"},
		"RangeInt":  {"range over a number", `{{ range 3 }}{{ . }}{{ end }}{{ range $i := 2 }}{{ $i }}{{ end }}`, "01201"},
		"Assign":    {"variables outlive a range", `{{ $n := 0 }}{{ range 3 }}{{ $n = add $n . }}{{ end }}{{ $n }}`, "3"},
		"Define":    {"templates call each other", `{{ define "a" }}<{{ . }}{{ template "b" . }}>{{ end }}{{ define "b" }}!{{ end }}{{ template "a" .user }}{{ template "a" "x" }}`, "<admin!><x!>"},
		"Block":     {"a block is defined and called", `{{ block "a" .user }}[{{ . }}]{{ end }}`, "[admin]"},
		"Recursion": {"recursion ends", `{{ define "a" }}{{ . }}{{ if gt . 0 }}{{ template "a" (sub . 1) }}{{ end }}{{ end }}{{ template "a" 50 | int }}`, ""},
		"Pipe":      {"values can be piped to methods and native functions", `{{ 1 | eq 1 }}{{ "user" | index . }}{{ "2006" | (toDate "2006" "2020").Format }}{{ (now.AddDate 0 0 1).After now }}`, "trueadmin2020true"},
		"And":       {"and stops early", `{{ and .empty (fail "no") }}{{ or .user (fail "no") }}`, "admin"},
		"Variables": {"fields of variables", `{{ $d := fromJson .json }}{{ $d.a.b }}{{ $d.c | upper }}{{ ($d).c }}`, "[1 x]Dd"},
		"Bytes":     {"values can be any bytes", `{{ hexdec "ff00" }}`, "\xff\x00"},
	}
	cases["Recursion"] = struct{ reason, text, want string }{"recursion ends", `{{ define "a" }}{{ . }}{{ if gt . 0 }}{{ template "a" (int (sub . 1)) }}{{ end }}{{ end }}{{ template "a" 5 }}`, "543210"}
	e := engine(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := e.Execute("t", c.text, values, NewBudget())
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestConcurrent renders with one engine in many goroutines.
func TestConcurrent(t *testing.T) {
	e := engine(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, err := e.Execute("t", `{{ define "a" }}{{ .user | upper }}{{ end }}{{ template "a" . }}`, values, NewBudget())
				if err != nil || string(got) != "ADMIN" {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestNoTrace renders two templates in sequence; the second must not see anything of the first.
func TestNoTrace(t *testing.T) {
	e := engine(t)
	if _, err := e.Execute("a", `{{ define "x" }}1{{ end }}`, values, NewBudget()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Execute("b", `{{ template "x" }}`, values, NewBudget()); err == nil {
		t.Error("a template of an earlier rendering can be called")
	}
}

// TestNothingOfTheHost calls every function with the names of a file and of an environment variable. No output must
// have their contents.
func TestNothingOfTheHost(t *testing.T) {
	const host = "oFtHeHoSt"
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(host), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEMPLATE_TEST", host)
	t.Setenv("ZONEINFO", filepath.Dir(file))
	e := engine(t)
	for name := range e.known {
		for _, arg := range []string{file, "file", "TEMPLATE_TEST", "$TEMPLATE_TEST", "${TEMPLATE_TEST}"} {
			for _, args := range []string{".a", ".a .a", ".a .a .a", "1 .a", "1 .a .a", ".a 1", ".a 1 .a", "(list .a)", "nil nil .a"} {
				out, err := e.Execute("t", "{{ "+name+" "+args+" }}", map[string]string{"a": arg}, NewBudget())
				if err == nil && strings.Contains(string(out), host) {
					t.Errorf("%s %s reads %s", name, args, arg)
				}
			}
		}
	}
}

// BenchmarkSecret renders the ten small templates of a typical Secret.
func BenchmarkSecret(b *testing.B) {
	e := engine(b)
	sources := []string{
		`{{ .user }}`, `{{ .password }}`, `{{ .user | b64enc }}`, `{{ .user | upper | quote }}`, `postgres://{{ .user }}:{{ .password | urlquery }}@host/db`,
		`{{ if .empty }}a{{ else }}b{{ end }}`, `{{ (fromJson .json).c }}`, `{{ printf "%s:%s" .user .password | b64enc }}`,
		"user={{ .user }}\npassword={{ .password }}\n", `{{ .password | trim | sha256sum }}`,
	}
	b.ReportAllocs()
	for b.Loop() {
		budget := NewBudget()
		for _, text := range sources {
			if _, err := e.Execute("t", text, values, budget); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkNew creates an engine, as each process does once.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestKeys checks which keys of the data a template reads by name.
func TestKeys(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		want         []string
	}{
		"None":    {"a text reads nothing", "x", nil},
		"Fields":  {"each key counts once", `{{ .b }}{{ .a }}{{ if .b }}{{ .c | b64enc }}{{ end }}`, []string{"a", "b", "c"}},
		"Index":   {"index and get read a key that is not an identifier", `{{ index . "tls.crt" }}{{ get . "tls.key" }}{{ if (index $ "ca.crt") }}{{ end }}`, []string{"ca.crt", "tls.crt", "tls.key"}},
		"Range":   {"in a range the dot is another value, and $ is the data", `{{ range splitList "," .list }}{{ $.user }}{{ .Other }}{{ end }}`, []string{"list", "user"}},
		"With":    {"so it is in a with, but for its condition and else", `{{ with .user }}{{ .Other }}{{ else }}{{ .none }}{{ end }}`, []string{"none", "user"}},
		"Decoded": {"a member of a decoded value is no key", `{{ (fromJson .config).password }}{{ index (fromJson .config) "x" }}`, []string{"config"}},
		"Invalid": {"a template that does not parse reads nothing", `{{ .a `, nil},
	}
	e, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 { // The second time it is prepared.
				if diff := cmp.Diff(tc.want, e.Keys(tc.text), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}
