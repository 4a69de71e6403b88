package pattern

import (
	"math"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCompile(t *testing.T) {
	cases := map[string]struct {
		reason string
		expr   string
		// want is a part of the error's message; empty for no error.
		want string
	}{
		"Empty":       {"an empty expression is valid", "", ""},
		"Plain":       {"a path is valid", "^shop/(.*)$", ""},
		"Class":       {"a class of Unicode is valid", `\p{Greek}{1,10}`, ""},
		"Unbalanced":  {"the message names the kind of the error", "a(", "missing closing )"},
		"Lookahead":   {"RE2 has no lookahead", "a(?=b)", "not a valid regular expression (RE2 syntax)"},
		"Repetitions": {"a short expression with too many states is refused", "((a{100}){10})", "too large"},
		"Million":     {"an expression with a million states is refused before it is compiled", "(?:" + strings.Repeat("a", 500) + "){1000}", "far more states"},
		"ManyClasses": {"a class counts as one state, however large it is", `\pL{1,300}`, ""},
		"Nested":      {"more repetitions than the engine accepts are refused", "((a{1000}){1000}){1000}", "not a valid regular expression"},
		"Classes":     {"as many Unicode classes as allowed are valid, and an escaped backslash begins none", `\\p[\pL\PN]\p{Greek}\pL\pL\pL\pL\pL`, ""},
		"TooMany":     {"more Unicode classes are refused before they are parsed", strings.Repeat(`\pL`, 9), "has 9 Unicode classes such as \\pL, at most 8 are allowed; use fewer"},
		"Negated":     {"a negated class counts, alone and in brackets", strings.Repeat(`[^\P{L}]`, 9), "has 9 Unicode classes"},
		"Ideographs":  {"a range of all ideographs without case is valid", `(?i)^[\x{4e00}-\x{9fa5}]+$`, ""},
		"Wide":        {"wide ranges are refused if the case is ignored", `(?i)[Ā-\x{10FFFF}]`, "its ranges have 124996 characters, at most 32768 are allowed; use smaller ranges, or remove the flag i"},
		"WideSum":     {"the ranges count together, in a group with the flag, too", `(?s-m:(?mi:[Ā-ϿĀ-ϿĀ-Ͽ]))` + strings.Repeat(`[\x{0100}-\x{0fff}]`, 9), "its ranges have 36864 characters"},
		"WideOctal":   {"the digits of an escape are one character", `(?i)[\377-Ɐ\xff-Ɐ\x{ff}-Ɐ]`, "its ranges have 33363 characters"},
		"WideCase":    {"wide ranges are valid if the case counts", `[Ā-\x{10FFFF}]`, ""},
		"All":         {"a range that has all characters with another case is valid", `(?i)[\x00-\x{10FFFF}]`, ""},
		"Letters":     {"many ranges of letters are valid", "(?i)[" + strings.Repeat("a-z", 168) + "]", ""},
		"Long":        {"an expression above the maximum length is refused", strings.Repeat("a", 513), "shorten it"},
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

// TestCompileMemory checks that an expression that would compile to 100 MiB is refused before that.
func TestCompileMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Compile("(?:" + strings.Repeat("a", 500) + "){1000}")
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 4<<20 {
		t.Errorf("Compile(): %v after %d KiB of memory, want an error before 4 MiB", err, took>>10)
	}
}

// TestWorst compiles expressions at the limits, each of which takes long for a reason of its own. Beyond the limits, they took 300 ms.
func TestWorst(t *testing.T) {
	const bound = 50 * time.Millisecond
	worst, slowest := time.Duration(0), ""
	wide := "Ā-\u7fff" // The range of almost all characters that are allowed.
	for _, flags := range []string{"", "(?i)", "^(?i)"} {
		for _, unit := range []string{`\pL`, `\PL`, `[\pL]`, `[^\pL\PN]`, `\pL\pN`, `a|\pL|`, `[^٠]`, `[[:^word:]]`, "[a-z]", "[à-þ]", "a{0,9}", `\pL{1,100}`, "(?:a|b)?", "[^a]?x|", "Ā-\u7fff", "Ā-\U0001E943"} {
			for _, around := range [][2]string{{"", ""}, {"[", "]"}, {"[" + wide, "]"}, {"[" + wide + "]", ""}, {"(?:[" + wide + "]{100}", ")"}} {
				n := (maxLength - len(flags+around[0]+around[1])) / len(unit)
				expr := flags + around[0] + strings.Repeat(unit, n) + around[1]
				for _, err := Compile(expr); err != nil && n > 0; _, err = Compile(expr) {
					n /= 2
					expr = flags + around[0] + strings.Repeat(unit, n) + around[1]
				}
				best := time.Duration(math.MaxInt64)
				for range 3 {
					start := time.Now()
					_, _ = Compile(expr)
					best = min(best, time.Since(start))
				}
				if best > worst {
					worst, slowest = best, expr
				}
			}
		}
	}
	if t.Logf("Compile(%q) takes %s", slowest, worst); worst > bound {
		t.Errorf("want at most %s", bound)
	}
}

func TestSize(t *testing.T) {
	cases := map[string]struct {
		reason            string
		expr              string
		classRunes, limit int
		want              int
	}{
		"Literal":    {"each character is a state", "abc", 0, 1000, 5},
		"Repetition": {"a repetition counts its maximum, plus one", "(?:ab){2,9}", 0, 1000, 60},
		"Open":       {"an open repetition counts its minimum, plus one", "(?:ab){9,}", 0, 1000, 60},
		"Class":      {"a class counts as a character", "[a-cx-z0-9]", 0, 1000, 2},
		"ClassRunes": {"classRunes adds the size of a class", "[a-cx-z0-9]", 2, 1000, 5},
		"Limit":      {"the size is capped at the limit", "(?:a{100}){10}", 0, 77, 77},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			re, err := syntax.Parse(tc.expr, syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, Size(re, tc.classRunes, tc.limit)); diff != "" {
				t.Errorf("%s: Size(%q): -want, +got:\n%s", tc.reason, tc.expr, diff)
			}
		})
	}
}

// FuzzCompile matches each valid expression against a text that makes bad expressions slow.
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
		parsed, err := syntax.Parse(expr, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		prog, err := syntax.Compile(parsed.Simplify())
		if size := Size(parsed, 0, 1<<30); err != nil || size < len(prog.Inst)-2 { // Each program has two states that Size does not count.
			t.Errorf("Size(%q) is %d, and it compiles to %d states: %v", expr, size, len(prog.Inst), err)
		}
		start := time.Now()
		re.MatchString(text)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("Compile(%q): it takes %s over %d characters", expr, d, len(text))
		}
	})
}
