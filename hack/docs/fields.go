package main

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A field is a row of a table.
type field struct {
	Path, Type, Text string
	Required         bool
	// Section is the path of the table with the fields of this one; empty if they follow in the same table.
	Section string
}

// Anchor returns the anchor of the section.
func (f field) Anchor() string { return anchor(f.Section) }

// A section is a table: the fields of an object.
type section struct {
	Path   string
	Rules  []string
	Fields []field
}

// IsTop reports whether the section is that of a whole spec or status.
func (s section) IsTop() bool { return !strings.Contains(s.Path, ".") }

// inTable is the maximum number of fields of a field in the same table. More fields have a section of their
// own.
const inTable = 4

// A reader turns schemas into tables.
type reader struct {
	// shown maps schemas that another page shows to the link to it.
	shown map[string]*schema
}

// sections returns the table of an object, and one for each of its fields that has many fields.
func (r reader) sections(path string, s *schema) []section {
	own := section{Path: path, Rules: rejections("Rule", s)}
	var others []section
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		f, inner := r.field(s, name), r.below(s.Properties[name], name)
		if len(inner) <= inTable {
			own.Fields = append(append(own.Fields, f), inner...)
			continue
		}
		_, suffix := elements(s.Properties[name])
		f.Section = path + "." + name + suffix
		own.Fields = append(own.Fields, f)
		for i := range inner {
			inner[i].Path = strings.TrimPrefix(inner[i].Path, name+suffix+".")
		}
		others = append(others, section{Path: f.Section, Fields: inner})
	}
	return append([]section{own}, others...)
}

// below returns all fields below a field, with paths that start with its own.
func (r reader) below(s *schema, path string) []field {
	object, suffix := elements(s)
	if r.known(object) != "" {
		return nil
	}
	var out []field
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		f := r.field(object, name)
		f.Path = path + suffix + "." + name
		out = append(append(out, f), r.below(object.Properties[name], f.Path)...)
	}
	return out
}

func (r reader) field(parent *schema, name string) field {
	s := parent.Properties[name]
	return field{Path: name, Type: r.typeOf(s), Text: sentences(s), Required: slices.Contains(parent.Required, name)}
}

// elements returns the schema of the elements of a list or a map, and the suffix for their path.
func elements(s *schema) (*schema, string) {
	switch {
	case s.Items != nil:
		inner, suffix := elements(s.Items)
		return inner, "[]" + suffix
	case s.AdditionalProperties != nil:
		inner, suffix := elements(s.AdditionalProperties)
		return inner, "{}" + suffix
	}
	return s, ""
}

// typeOf returns the type of a field for a table.
func (r reader) typeOf(s *schema) string {
	known := r.known(s)
	switch {
	case known != "":
		return known
	case s.Items != nil:
		return "list of " + r.typeOf(s.Items)
	case s.AdditionalProperties != nil:
		return "map of " + r.typeOf(s.AdditionalProperties)
	case s.Format == "date-time":
		return "time"
	case s.PreserveUnknown:
		return "any object"
	case s.Type == "":
		return "any"
	}
	return s.Type
}

// ofKubernetes maps the field names of types of Kubernetes, which no page repeats, to their links.
var ofKubernetes = map[string]string{
	"matchExpressions matchLabels":                                     "[LabelSelector](https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors)",
	"lastTransitionTime message observedGeneration reason status type": "Condition",
}

// known returns the name of a type whose fields this page does not show, or "".
func (r reader) known(s *schema) string {
	for link, other := range r.shown {
		if sameFields(s, other) {
			return link
		}
	}
	return ofKubernetes[strings.Join(slices.Sorted(maps.Keys(s.Properties)), " ")]
}

// sameFields reports whether two objects have the same fields.
func sameFields(a, b *schema) bool {
	return len(a.Properties) > 0 && reflect.DeepEqual(a.Properties, b.Properties) && reflect.DeepEqual(a.Required, b.Required)
}

// anchor returns the anchor that GitHub and the site give to a heading with a path.
func anchor(path string) string {
	return strings.NewReplacer(".", "", "[", "", "]", "", "{", "", "}", "").Replace(strings.ToLower(path))
}
