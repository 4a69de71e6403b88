// Package pattern compiles users' regular expressions. Go's engine takes time linear in the text, but also in the
// size of the compiled expression, and a short expression can compile to thousands of states.
package pattern

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Limits of an expression.
const (
	maxLength = 512
	// maxStates limits the compiled expression. At this size, a text of 100 KB takes at most about a second.
	maxStates = 1000
	// maxEstimate is the largest estimated size at which an expression is compiled at all: some expressions would
	// compile to a million states. It is far above maxStates because the estimate is too high.
	maxEstimate = 16 * maxStates
	// maxClasses limits the Unicode classes. For each, the parser can take 50 microseconds.
	//limit:objects Unicode classes such as `\pL` in a regular expression | The expression is refused.
	maxClasses = 8
	// maxFolded limits the characters of ranges without regard to case. The parser looks up each, unless the range has all characters
	// with another case.
	//limit:objects Characters of all ranges of a regular expression with `(?i)` | The expression is refused.
	maxFolded = 1 << 15
)

// minFold and maxFold are the first and the last character with another case.
const minFold, maxFold = 'A', '\U0001E943'

// Compile returns an expression in RE2 syntax. The error describes what is wrong with the expression, and does not
// start with the name of a field.
func Compile(expr string) (*regexp.Regexp, error) {
	if len(expr) > maxLength {
		return nil, errors.Errorf("the regular expression has %d characters, at most %d are allowed; shorten it", len(expr), maxLength)
	}
	if _, err := Work(expr); err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, errors.Errorf("%.64q is not a valid regular expression (RE2 syntax): %s", expr, reason(err))
	}
	if Size(parsed, 0, maxEstimate+1) > maxEstimate {
		return nil, tooLarge(expr, "far more")
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, errors.Errorf("%.64q is not a valid regular expression (RE2 syntax)", expr)
	}
	if len(prog.Inst) > maxStates {
		return nil, tooLarge(expr, strconv.Itoa(len(prog.Inst)))
	}
	return regexp.Compile(expr)
}

// Work returns about how many microseconds the parser takes for the classes of an expression, or an error if it has too many. The
// error has no part of the expression, which can be secret.
func Work(expr string) (int, error) {
	classes, folded := 0, 0
	for i := 0; i+1 < len(expr); i++ {
		if expr[i] == '\\' {
			i++
			if expr[i] == 'p' || expr[i] == 'P' {
				classes++
			}
		}
	}
	if foldFlag.MatchString(expr) {
		folded = inRanges(expr)
	}
	switch {
	case classes > maxClasses:
		return 0, errors.Errorf("the regular expression has %d Unicode classes such as \\pL, at most %d are allowed; use fewer", classes, maxClasses)
	case folded > maxFolded:
		return 0, errors.Errorf("the regular expression ignores case, and its ranges have %d characters, at most %d are allowed; use smaller ranges, or remove the flag i", folded, maxFolded)
	}
	return 50*classes + folded/64, nil
}

var (
	// foldFlag matches the flag that ignores case.
	foldFlag = regexp.MustCompile(`\(\?[a-zA-Z-]*i`)
	// token matches a character. Groups are its hexadecimal or octal digits.
	token = regexp.MustCompile(`(?s)\\x\{([[:xdigit:]]+)\}|\\x([[:xdigit:]]{2})|\\([0-7]{1,3})|\\[a-zA-Z]|\\?.`)
)

// inRanges returns an upper bound of the characters that the parser looks up for an expression that ignores case. It takes each dash for
// that of a range.
func inRanges(expr string) (n int) {
	var lo, last rune // The two characters before.
	dash := false     // last is a dash.
	for _, t := range token.FindAllStringSubmatch(expr, -1) {
		hi := character(t)
		// The parser adds a range with all characters that have another case as it is.
		if dash && (lo > minFold || hi < maxFold) {
			n += max(0, int(min(hi, maxFold)-max(lo, minFold))+1)
		}
		lo, last, dash = last, hi, t[0] == "-"
	}
	return n
}

// character returns the character of a token; zero for an escape that is a letter, because none stands for one with another case.
func character(t []string) rune {
	text, base := t[1]+t[2], 16
	if t[3] != "" {
		text, base = t[3], 8
	}
	if n, err := strconv.ParseInt(text, base, 32); err == nil {
		return rune(n)
	}
	c, _ := utf8.DecodeLastRuneInString(t[0])
	if len(t[0]) == 2 && t[0][0] == '\\' && unicode.IsLetter(c) {
		return 0
	}
	return c
}

func tooLarge(expr, states string) error {
	return errors.Errorf("the regular expression %.64q is too large: it needs %s states, at most %d are allowed; lower its repetitions", expr, states, maxStates)
}

// Size returns an upper bound of the number of states that re compiles to, at most limit. It needs no compilation,
// because a short expression such as (a{1000}){1000} can have a huge result. Each classRunes characters of a class
// count as one more state; zero counts none.
func Size(re *syntax.Regexp, classRunes, limit int) int {
	size := 2
	for _, sub := range re.Sub {
		size = min(size+Size(sub, classRunes, limit), limit)
	}
	switch {
	case re.Op == syntax.OpLiteral:
		size += len(re.Rune)
	case re.Op == syntax.OpCharClass && classRunes > 0:
		size += len(re.Rune) / classRunes
	case re.Op == syntax.OpRepeat:
		size *= max(re.Min, re.Max, 0) + 1
	}
	return min(size, limit)
}

// reason returns the kind of a syntax error; the error's own text repeats the expression.
func reason(err error) string {
	var e *syntax.Error
	if errors.As(err, &e) {
		return e.Code.String()
	}
	return "it cannot be read"
}
