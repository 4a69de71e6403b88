package pattern

import (
	"strings"
	"testing"
	"time"
)

func TestCompile(t *testing.T) {
	cases := map[string]struct {
		reason string
		expr   string
		// want is part of the error; empty if there is none.
		want string
	}{
		"Empty":       {"nothing matches everywhere", "", ""},
		"Plain":       {"a path", "^shop/(.*)$", ""},
		"Class":       {"a class of Unicode", `\p{Greek}{1,10}`, ""},
		"Unbalanced":  {"the kind of the mistake is named", "a(", "missing closing )"},
		"Lookahead":   {"RE2 has none", "a(?=b)", "not a regular expression in RE2 syntax"},
		"Repetitions": {"few characters can stand for many states", "((a{100}){10})", "too large"},
		"Nested":      {"more than the engine itself takes", "((a{1000}){1000}){1000}", "not a regular expression"},
		"Long":        {"what nobody writes by hand", strings.Repeat("a", 513), "shorten it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			re, err := Compile(tc.expr)
			switch {
			case tc.want == "" && (err != nil || re.String() != tc.expr):
				t.Errorf("%s: Compile(%q): %v, %v", tc.reason, tc.expr, re, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s: Compile(%q): error %v, want %q", tc.reason, tc.expr, err, tc.want)
			}
		})
	}
}

// FuzzCompile matches what compiles with a text on which bad expressions are slow.
func FuzzCompile(f *testing.F) {
	for _, expr := range []string{"", "^a/(.*)$", "(a|aa)+$", "(x+x+)+y", "((a{30}){30})", "a(?=b)", `\pL{1,300}`} {
		f.Add(expr)
	}
	text := strings.Repeat("a", 4096)
	f.Fuzz(func(t *testing.T, expr string) {
		re, err := Compile(expr)
		if err != nil {
			return
		}
		start := time.Now()
		re.ReplaceAllString(text, "b")
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("Compile(%q): it takes %s over %d characters", expr, d, len(text))
		}
	})
}
