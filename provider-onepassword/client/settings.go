package client

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// markTag is the name of the tag with the mark of a provider.Writer. A slash would make it a tag below another one.
	markTag = provider.Reserved + "_created-by"
	// maxText is the maximum length of a tag and of a label, in bytes.
	maxText = 256
)

// settings is the metadata of a provider.Target.
type settings struct {
	// Tags are the tags by name. A tag of 1Password is the name, or the name and a value after "=".
	Tags map[string]string `json:"tags"`
}

// settingsOf returns the settings of a target, whose key must be one that a title can have.
func settingsOf(t provider.Target) (s settings, err error) {
	if err := checkKey(t.Key); err != nil {
		return s, err
	}
	if err := provider.DecodeMetadata(t.Metadata, &s, "tags, which is an object of strings"); err != nil {
		return s, err
	}
	return s, provider.CheckSettings("tags", s.Tags, func(name, value string) (wrong string) {
		if strings.Contains(name, "=") || !isText(tag(name, value)) {
			return fmt.Sprintf("is not a tag; use a name without \"=\", and at most %d bytes for name and value", maxText)
		}
		return ""
	})
}

// isText reports whether 1Password keeps a label or a tag as it is.
func isText(s string) bool {
	return s != "" && len(s) <= maxText && utf8.ValidString(s) && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, unicode.IsControl)
}

// tag returns the tag with a name and a value.
func tag(name, value string) string {
	if value == "" {
		return name
	}
	return name + "=" + value
}

// drift returns the settings that an item does not have.
func (s settings) drift(i *item) (names []string) {
	for name := range s.Tags {
		if !slices.Equal(i.Tags, s.onto(i.Tags, name)) {
			names = append(names, "tags."+name)
		}
	}
	slices.Sort(names)
	return names
}

// onto returns tags in which some tags, by name, are those of the settings. If one of several tags with a name is, the others stay.
func (s settings) onto(tags []string, names ...string) []string {
	set := map[string]bool{}
	var all []string
	for _, t := range tags {
		name, _, _ := strings.Cut(t, "=")
		switch {
		case !slices.Contains(names, name):
			all = append(all, t)
		case name != markTag && slices.Contains(tags, tag(name, s.Tags[name])):
			set[name] = true
			all = append(all, t)
		case !set[name]:
			set[name] = true
			all = append(all, tag(name, s.Tags[name]))
		}
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if !set[name] {
			all = append(all, tag(name, s.Tags[name]))
		}
	}
	return all
}

// checkOnto returns an error if it is unclear which of several tags with one name is to be replaced.
func (s settings) checkOnto(tags []string) error {
	for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
		var same []string
		for _, t := range tags {
			if n, _, _ := strings.Cut(t, "="); n == name {
				same = append(same, t)
			}
		}
		if len(same) > 1 && !slices.Contains(same, tag(name, s.Tags[name])) {
			return provider.NewError(provider.Invalid, "metadata.tags: the item has several tags %s: %s; remove all but one in 1Password, or add %s there", provider.Quoted(name), list(same), provider.Quoted(tag(name, s.Tags[name])))
		}
	}
	return nil
}

// metadataOf returns the values of tags by name. Several values of one name are joined by commas.
func metadataOf(tags []string) map[string]string {
	values := map[string]string{}
	for _, t := range slices.Sorted(slices.Values(tags)) {
		name, text, _ := strings.Cut(t, "=")
		if former := values[name]; former != "" {
			text = former + "," + text
		}
		values[name] = text
	}
	return values
}

// names returns the names of all tags.
func (s settings) names() []string { return slices.Collect(maps.Keys(s.Tags)) }

// markOf returns the mark of an item; empty if it has none.
func markOf(i *item) string {
	for _, t := range i.Tags {
		if mark, ok := strings.CutPrefix(t, markTag+"="); ok {
			return mark
		}
	}
	return ""
}
