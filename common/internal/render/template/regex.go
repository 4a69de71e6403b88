package template

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/direct-secrets/direct-secrets/common/internal/pattern"
)

const (
	// maxPattern limits a regular expression, in bytes.
	maxPattern = 4 << 10
	// maxProgram limits the instructions of a compiled regular expression.
	maxProgram = 5_000
	// classRunes is the number of characters of a class that cost as much as one more instruction, because a large
	// class takes longer to search.
	classRunes = 16
)

// A searcher finds the matches of a regular expression and charges for every character that the search reads. For
// some expressions, the methods of regexp that find all matches take quadratic time and cannot be stopped. Here each
// match is one search in a reader that counts.
type searcher struct {
	run *run
	re  *regexp.Regexp
	// work is the cost of compiling it once more, in steps.
	work int
	// after finds a match after the first character of its text. That character is there so that \b and ^ know what
	// precedes the match.
	after *regexp.Regexp
	// price is the cost of one character, in 64ths of a step.
	price int
}

// errPattern is the error for a malformed regular expression.
var errPattern = &failure{"the regular expression is malformed"}

// newSearcher compiles expr. The error for a malformed one is errPattern.
func newSearcher(r *run, expr string) (*searcher, error) {
	if len(expr) > maxPattern {
		return nil, &failure{fmt.Sprintf("the regular expression is longer than %d bytes", maxPattern)}
	}
	work, err := compiling(expr)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, errPattern
	}
	size := pattern.Size(parsed, classRunes, maxProgram+1)
	if size > maxProgram {
		return nil, &failure{"the regular expression is too large; use fewer or smaller repetitions"}
	}
	if err := r.budget.spend(10+2*size+len(expr)/4+work, 0); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, errPattern
	}
	return &searcher{run: r, re: re, work: work, price: 8 + size}, nil
}

// compiling returns the steps that the classes of an expression take until it is compiled: it is parsed twice.
func compiling(expr string) (steps int, err error) {
	work, err := pattern.Work(expr)
	if err != nil {
		return 0, &failure{err.Error()}
	}
	return 2 * work, nil
}

// unquoted returns an expression without \Q and \E, so that it can be part of another one.
func unquoted(expr string) string {
	for i := 0; i+1 < len(expr); i++ {
		if expr[i] != '\\' {
			continue
		}
		if i++; expr[i] == 'Q' {
			text, rest, _ := strings.Cut(expr[i+1:], `\E`)
			return expr[:i-1] + regexp.QuoteMeta(text) + unquoted(rest)
		}
	}
	return expr
}

// A Replacer replaces the matches of a regular expression within a budget, without a template. For some expressions,
// the methods of regexp take quadratic time and cannot be stopped.
type Replacer struct{ searcher *searcher }

// NewReplacer returns a Replacer for an expression in the syntax of regexp.
func NewReplacer(re *regexp.Regexp, b *Budget) (*Replacer, error) {
	parsed, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return nil, errPattern
	}
	work, err := compiling(re.String())
	if err != nil {
		return nil, err
	}
	size := pattern.Size(parsed, classRunes, maxProgram+1)
	return &Replacer{&searcher{run: &run{budget: b}, re: re, work: work, price: 8 + size}}, nil
}

// Replace does the same as ReplaceAllString of regexp. It returns an error if the budget is spent.
func (r *Replacer) Replace(text, replacement string) (string, error) {
	return r.searcher.expand(text, replacement)
}

// find returns the first match at or after pos, like FindStringSubmatchIndex; nil if there is none.
func (s *searcher) find(text string, pos int) ([]int, error) {
	re, from := s.re, pos
	if pos > 0 {
		if s.after == nil {
			if err := s.run.budget.spend(10+2*s.price+s.work, 0); err != nil {
				return nil, err
			}
			after, err := regexp.Compile(`(?s:\A.)(?s:.*?)(` + unquoted(s.re.String()) + `)`)
			if err != nil {
				return nil, &failure{"the regular expression is too large"}
			}
			s.after = after
		}
		_, width := utf8.DecodeLastRuneInString(text[:pos])
		re, from = s.after, pos-width
	}
	in := &counter{text: text[from:], price: s.price, budget: s.run.budget}
	loc := re.FindReaderSubmatchIndex(in)
	if in.err == nil {
		in.err = s.run.budget.spend(1+in.work/64, 0)
	}
	if in.err != nil || loc == nil {
		return nil, in.err
	}
	if pos > 0 {
		loc = loc[2:]
	}
	for i := range loc {
		if loc[i] >= 0 {
			loc[i] += from
		}
	}
	return loc, nil
}

// each calls f with every match, or with at most limit matches if limit is not negative. Like regexp it skips an
// empty match directly after another match.
func (s *searcher) each(text string, limit int, f func(loc []int) error) error {
	previous := -1
	for pos := 0; pos <= len(text) && limit != 0; {
		loc, err := s.find(text, pos)
		if err != nil {
			return err
		}
		if loc == nil {
			return nil
		}
		accepted := loc[1] != pos || loc[0] != previous
		if loc[1] == pos {
			_, width := utf8.DecodeRuneInString(text[pos:])
			pos += max(width, 1)
		} else {
			pos = loc[1]
		}
		previous = loc[1]
		if accepted {
			limit--
			if err := f(loc); err != nil {
				return err
			}
		}
	}
	return nil
}

// A counter reads text for a search, and ends early when the budget is spent.
type counter struct {
	text   string
	price  int
	work   int
	budget *Budget
	err    error
}

// ReadRune implements io.RuneReader.
func (c *counter) ReadRune() (rune, int, error) {
	if c.text == "" || c.err != nil {
		return 0, 0, io.EOF
	}
	if c.work += c.price; c.work > 64*1024 {
		c.err = c.budget.spend(c.work/64, 0)
		c.work = 0
	}
	r, width := utf8.DecodeRuneInString(c.text)
	c.text = c.text[width:]
	return r, width, nil
}

// The regular expression functions do the same as those of sprig. A malformed expression is an error, except for
// regexMatch, which returns false.

func regexMatch(r *run, pattern, text string) (bool, error) {
	found, err := mustRegexMatch(r, pattern, text)
	if errors.Is(err, errPattern) {
		return false, nil
	}
	return found, err
}

func mustRegexMatch(r *run, pattern, text string) (bool, error) {
	s, err := newSearcher(r, pattern)
	if err != nil {
		return false, err
	}
	loc, err := s.find(text, 0)
	return loc != nil, err
}

func regexFind(r *run, pattern, text string) (string, error) {
	s, err := newSearcher(r, pattern)
	if err != nil {
		return "", err
	}
	loc, err := s.find(text, 0)
	if loc == nil {
		return "", err
	}
	return text[loc[0]:loc[1]], nil
}

func regexFindAll(r *run, pattern, text string, limit int) ([]string, error) {
	s, err := newSearcher(r, pattern)
	if err != nil {
		return nil, err
	}
	var found []string
	err = s.each(text, limit, func(loc []int) error {
		if len(found) >= maxElements {
			return tooMany()
		}
		found = append(found, text[loc[0]:loc[1]])
		return nil
	})
	return found, err
}

func regexReplaceAll(r *run, pattern, text, replacement string) (string, error) {
	s, err := newSearcher(r, pattern)
	if err != nil {
		return "", err
	}
	return s.expand(text, replacement)
}

func regexReplaceAllLiteral(r *run, pattern, text, replacement string) (string, error) {
	s, err := newSearcher(r, pattern)
	if err != nil {
		return "", err
	}
	return s.replace(text, replacement, func(out []byte, _ []int) []byte { return append(out, replacement...) })
}

// expand replaces each match by the replacement, in which $1 is a group.
func (s *searcher) expand(text, replacement string) (string, error) {
	return s.replace(text, replacement, func(out []byte, loc []int) []byte {
		return s.re.ExpandString(out, replacement, text, loc)
	})
}

// replace replaces each match by what add appends. It first checks the size of each replacement, which can repeat a
// long match many times.
func (s *searcher) replace(text, replacement string, add func(out []byte, loc []int) []byte) (string, error) {
	references := 0
	for _, c := range []byte(replacement) {
		if c == '$' {
			references++
		}
	}
	var out []byte
	end := 0
	err := s.each(text, -1, func(loc []int) error {
		growth := loc[0] - end + len(replacement) + references*(loc[1]-loc[0])
		if len(out)+growth > maxValue {
			return tooLarge()
		}
		out = append(out, text[end:loc[0]]...)
		out = add(out, loc)
		end = loc[1]
		return s.run.budget.spend(1+growth/256, 0)
	})
	return string(append(out, text[end:]...)), err
}

// regexSplit returns the parts of text between the matches, at most limit if that is not negative.
func regexSplit(r *run, pattern, text string, limit int) ([]string, error) {
	s, err := newSearcher(r, pattern)
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		return nil, nil
	}
	if pattern != "" && text == "" {
		return []string{""}, nil
	}
	parts := []string{}
	begin, end := 0, 0
	err = s.each(text, limit, func(loc []int) error {
		if len(parts) >= maxElements {
			return tooMany()
		}
		if limit > 0 && len(parts) >= limit-1 {
			return nil
		}
		end = loc[0]
		if loc[1] != 0 {
			parts = append(parts, text[begin:end])
		}
		begin = loc[1]
		return nil
	})
	if end != len(text) {
		parts = append(parts, text[begin:])
	}
	return parts, err
}
