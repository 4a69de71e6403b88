package emulator

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// A filter selects secrets as documented at
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_Filter.html. Every filter must match, and for each one of its values.
type filter struct {
	Key    string
	Values []string
}

// attributes returns the texts of a secret that a filter key compares. The other keys of the service are not emulated.
var attributes = map[string]func(*secret) []string{
	"name":      func(s *secret) []string { return []string{s.name} },
	"tag-key":   func(s *secret) []string { return tagParts(s, func(t tag) string { return t.Key }) },
	"tag-value": func(s *secret) []string { return tagParts(s, func(t tag) string { return t.Value }) },
}

func tagParts(s *secret, part func(tag) string) []string {
	parts := make([]string, 0, len(s.tags))
	for _, t := range s.tags {
		parts = append(parts, part(t))
	}
	return parts
}

func (f filter) check() error {
	if attributes[f.Key] == nil || len(f.Values) == 0 || slices.ContainsFunc(f.Values, func(v string) bool { return strings.HasPrefix(v, "!") }) {
		return invalidField("filters", "Member must be emulated")
	}
	return nil
}

func (f filter) matches(s *secret) bool {
	return slices.ContainsFunc(attributes[f.Key](s), func(text string) bool {
		return slices.ContainsFunc(f.Values, func(v string) bool { return strings.HasPrefix(text, v) })
	})
}

func hashString(b []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(b) // never returns an error
	return strconv.FormatUint(h.Sum64(), 36)
}
