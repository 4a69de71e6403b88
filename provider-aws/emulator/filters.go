package emulator

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A filter selects secrets as documented at
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_Filter.html. Every filter must match, and
// for each one of its values. A value that starts with "!" must not match.
type filter struct {
	Key    string
	Values []string
}

type matcher func(*secret) bool

// attributes returns the texts of a secret that a filter key compares.
var attributes = map[string]func(*secret) []string{
	"description":    func(s *secret) []string { return []string{strings.ToLower(s.description)} },
	"name":           func(s *secret) []string { return []string{s.name} },
	"tag-key":        func(s *secret) []string { return tagParts(s, func(t tag) string { return t.Key }) },
	"tag-value":      func(s *secret) []string { return tagParts(s, func(t tag) string { return t.Value }) },
	"primary-region": func(*secret) []string { return nil }, // no secret in the emulator is a replica
	"owning-service": func(*secret) []string { return nil }, // no secret in the emulator is managed by another service
	"all":            allWords,
}

func tagParts(s *secret, part func(tag) string) []string {
	parts := make([]string, 0, len(s.tags))
	for _, t := range s.tags {
		parts = append(parts, part(t))
	}
	return parts
}

func compileFilters(filters []filter) (matcher, error) {
	if len(filters) > 10 {
		return nil, invalidField("filters", "Member must have length less than or equal to 10")
	}
	all := make([]matcher, 0, len(filters))
	for i, f := range filters {
		m, err := f.compile(i + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return func(s *secret) bool {
		return !slices.ContainsFunc(all, func(m matcher) bool { return !m(s) })
	}, nil
}

func (f filter) compile(number int) (matcher, error) {
	attribute, ok := attributes[f.Key]
	if !ok {
		return nil, invalidField(fmt.Sprintf("filters.%d.member.key", number),
			"Member must satisfy enum value set: [all, description, name, owning-service, primary-region, tag-key, tag-value]")
	}
	if err := checkLength(fmt.Sprintf("filters.%d.member.values", number), len(f.Values), 1, 10); err != nil {
		return nil, err
	}
	var wanted, unwanted []string
	for _, v := range f.Values {
		v, negated := strings.CutPrefix(v, "!")
		terms := f.terms(v)
		if negated {
			unwanted = append(unwanted, terms...)
		} else {
			wanted = append(wanted, terms...)
		}
	}
	return func(s *secret) bool {
		values := attribute(s)
		return (len(wanted) == 0 || anyPrefix(values, wanted)) && !anyPrefix(values, unwanted)
	}, nil
}

// terms returns the prefixes that a filter value searches for.
func (f filter) terms(value string) []string {
	switch f.Key {
	case "all":
		return words(value)
	case "description":
		return []string{strings.ToLower(value)}
	default:
		return []string{value}
	}
}

func anyPrefix(values, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return slices.ContainsFunc(values, func(t string) bool { return strings.HasPrefix(t, p) })
	})
}

func allWords(s *secret) []string {
	all := append(words(s.name), words(s.description)...)
	for _, t := range s.tags {
		all = append(append(all, words(t.Key)...), words(t.Value)...)
	}
	return all
}

// words splits a text like the service's search: at punctuation, where lower case changes to upper case, and
// where letters change to digits.
func words(text string) []string {
	var all []string
	start, last := 0, rune(0)
	flush := func(end int) {
		if start < end {
			all = append(all, strings.ToLower(text[start:end]))
		}
	}
	for i, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			start = i + len(string(r))
		case unicode.IsUpper(r) && unicode.IsLower(last), unicode.IsDigit(r) != unicode.IsDigit(last):
			flush(i)
			start = max(start, i)
		}
		last = r
	}
	flush(len(text))
	return all
}

func hashString(b []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(b) // never returns an error
	return strconv.FormatUint(h.Sum64(), 36)
}
