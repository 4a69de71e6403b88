// Package pattern compiles the regular expressions that users write. Go's engine is linear in the text,
// but also in the expression, and one of a few characters can stand for thousands of states.
package pattern

import (
	"regexp"
	"regexp/syntax"
	"strconv"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Bounds of an expression.
const (
	maxLength = 512
	// maxStates is the size of the compiled expression. At this size a text of 100 KB takes about a
	// second at worst.
	maxStates = 1000
	// maxEstimate is the largest estimate of that size at which an expression is compiled at all, because some
	// stand for a million states. It is far above maxStates, since the estimate is.
	maxEstimate = 16 * maxStates
)

// Compile returns an expression in RE2 syntax. The error says what is wrong with it and does not begin
// with a field.
func Compile(expr string) (*regexp.Regexp, error) {
	if len(expr) > maxLength {
		return nil, errors.Errorf("the regular expression has %d characters, and at most %d are served; shorten it", len(expr), maxLength)
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, errors.Errorf("%.64q is not a regular expression in RE2 syntax: %s", expr, reason(err))
	}
	if Size(parsed, 0, maxEstimate+1) > maxEstimate {
		return nil, tooLarge(expr, "far more")
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, errors.Errorf("%.64q is not a regular expression in RE2 syntax", expr)
	}
	if len(prog.Inst) > maxStates {
		return nil, tooLarge(expr, strconv.Itoa(len(prog.Inst)))
	}
	return regexp.Compile(expr)
}

func tooLarge(expr, states string) error {
	return errors.Errorf("the regular expression %.64q is too large: it stands for %s states, and at most %d are served; lower its repetitions", expr, states, maxStates)
}

// Size returns how many states re compiles to at most, or limit if there may be more. It is known before
// compiling, because (a{1000}){1000} is short and what it stands for is not. So many characters of a class as
// classRunes count as one more; zero counts none.
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

// reason is the kind of a syntax error; the text of it repeats the expression.
func reason(err error) string {
	var e *syntax.Error
	if errors.As(err, &e) {
		return e.Code.String()
	}
	return "it cannot be read"
}
