// Package pattern compiles users' regular expressions. Go's engine takes time linear in the text, but also in the
// size of the compiled expression, and a short expression can compile to thousands of states.
package pattern

import (
	"regexp"
	"regexp/syntax"
	"strconv"

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
)

// Compile returns an expression in RE2 syntax. The error describes what is wrong with the expression, and does not
// start with the name of a field.
func Compile(expr string) (*regexp.Regexp, error) {
	if len(expr) > maxLength {
		return nil, errors.Errorf("the regular expression has %d characters, at most %d are allowed; shorten it", len(expr), maxLength)
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
