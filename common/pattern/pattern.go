// Package pattern compiles the regular expressions that users write. Go's engine is linear in the text,
// but also in the expression, and one of a few characters can stand for thousands of states.
package pattern

import (
	"regexp"
	"regexp/syntax"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Bounds of an expression.
const (
	maxLength = 512
	// maxStates is the size of the compiled expression. At this size a text of 100 KB takes about a
	// second at worst.
	maxStates = 1000
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
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, errors.Errorf("%.64q is not a regular expression in RE2 syntax", expr)
	}
	if len(prog.Inst) > maxStates {
		return nil, errors.Errorf("the regular expression %.64q is too large: it stands for %d states, and at most %d are served; lower its repetitions", expr, len(prog.Inst), maxStates)
	}
	return regexp.Compile(expr)
}

// reason is the kind of a syntax error; the text of it repeats the expression.
func reason(err error) string {
	var e *syntax.Error
	if errors.As(err, &e) {
		return e.Code.String()
	}
	return "it cannot be read"
}
