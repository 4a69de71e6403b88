package push

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/direct-secrets/direct-secrets/common/internal/property"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// emptyObject is the initial value of a secret whose properties are pushed.
var emptyObject = []byte("{}")

// A document is a secret that holds a JSON object. Edits keep the bytes of all other members.
type document []byte

// parse returns data as a document. The error is of class Invalid if data is no JSON object.
func parse(data []byte) (document, error) {
	if !json.Valid(data) || !gjson.ParseBytes(data).IsObject() {
		return nil, provider.NewError(provider.Invalid, "the remote value is not a JSON object, so no property can be set in it; push the whole secret, or push to another key")
	}
	return document(data), nil
}

// A location is where a property is in a document, or would be.
type location struct {
	// names are the names of the members from the top.
	names []property.Name
	// value exists if the member exists.
	value gjson.Result
	// query is true if the property is a query, and no member has exactly its name.
	query bool
}

// at returns the location of a property, which is the one that a read finds. The error is of class Invalid if a member on
// the way occurs twice.
func (d document) at(of string) (location, error) {
	root := gjson.ParseBytes(d)
	v, err := property.Member(root, of)
	if err != nil || v.Exists() {
		return location{names: []property.Name{{Text: of}}, value: v}, err
	}
	names, query := property.Split(of)
	if query {
		return location{names: names, query: true}, nil
	}
	v, _, err = property.Walk(root, names)
	return location{names: names, value: v}, err
}

// path returns the names of the member that a property means, as one text. All spellings of one member have one path. A query
// has a path of its own.
func (d document) path(of string) string {
	if of == "" {
		return "" // The whole secret.
	}
	p, _ := d.at(of) // The names are those of a member that occurs twice, too.
	if p.query {
		return "?" + of
	}
	var names []string
	for _, n := range p.names {
		names = append(names, property.Escape(n.Text))
	}
	return "." + strings.Join(names, ".")
}

// get returns the value of a property, in the form that a Secret would hold.
func (d document) get(of string) (value []byte, exists bool, err error) {
	p, err := d.at(of)
	if err != nil || !p.value.Exists() {
		return nil, false, err
	}
	return render.Text(p.value), true, nil
}

// has is get for a property that can be read, or is not compared.
func (d document) has(of string) ([]byte, bool) {
	value, exists, err := d.get(of)
	return value, exists && err == nil
}

// set returns the document with a property set to a value.
func (d document) set(of string, value []byte) (document, error) {
	if !utf8.Valid(value) {
		return nil, provider.NewError(provider.Invalid, "property %.64q: the value is not UTF-8 text, as JSON requires; encode it with a template ({{ b64enc .KEY }}), or push it as a whole secret to a store that keeps bytes", of)
	}
	p, err := d.at(of)
	if err == nil {
		err = p.check(of)
	}
	if err != nil {
		return nil, in(of, err)
	}
	if at := d.blocked(p.names); at != "" {
		return nil, provider.NewError(provider.Invalid, "property %.64q: %.64q is not a JSON object in the remote secret; choose another property", of, at)
	}
	out, err := sjson.SetBytes(d, pathOf(p.names), string(value))
	if err == nil {
		// A read must find the value, whatever the name.
		if got, ok := document(out).has(of); ok && bytes.Equal(got, value) && json.Valid(out) {
			return document(out), nil
		}
	}
	return nil, provider.NewError(provider.Invalid, "property %.64q cannot be set; choose another", of)
}

func in(of string, err error) error {
	return provider.NewError(provider.Invalid, "property %.64q: %s", of, provider.Safe(err).Message)
}

// check returns an error if a property cannot be written. A property that exists can.
func (p location) check(of string) error {
	switch {
	case p.value.Exists():
		return nil
	case p.query:
		return provider.NewError(provider.Invalid, `it is a query (*, ? or |, or a name that starts with @, [, { or !), and the remote secret has no member of exactly this name; write \ before such a character that is part of a name`)
	case len(of) > property.MaxLength && (len(p.names) != 1 || p.names[0].Text != of):
		return provider.NewError(provider.Invalid, "it is a path with more than %d bytes; choose a shorter one", property.MaxLength)
	}
	for _, n := range p.names {
		switch {
		case n.Text == "":
			return provider.NewError(provider.Invalid, `it has an empty part; write it as a or as a.b, or write \ before a dot that is part of a name`)
		case n.Unusual:
			return provider.NewError(provider.Invalid, `# at the start of a name asks for the elements of a list; write \# if it is part of the name`)
		}
	}
	return nil
}

// without returns the document without the member that names lead to, and without the objects that this leaves empty.
func (d document) without(names []property.Name) (document, error) {
	for n := len(names); n > 0; n-- {
		v, _, err := property.Walk(gjson.ParseBytes(d), names[:n])
		if err != nil {
			return nil, err
		}
		if n < len(names) && !empty(v) || !v.Exists() {
			break
		}
		object, _, err := property.Walk(gjson.ParseBytes(d), names[:n-1])
		if err != nil {
			return nil, err
		}
		d = d.cut(object, names[n-1].Text)
	}
	if v, _, _ := property.Walk(gjson.ParseBytes(d), names); v.Exists() || !json.Valid(d) {
		return nil, provider.NewError(provider.Invalid, "property %.64q cannot be removed; remove it at the provider", strings.Join(nameStrings(names), "."))
	}
	return d, nil
}

// cut returns the document without a member of an object, and without the comma that separates it. (sjson finds no end
// of a name with quotes.)
func (d document) cut(object gjson.Result, name string) document {
	from, to := -1, -1
	before := -1 // The end of the member before it.
	object.ForEach(func(k, v gjson.Result) bool {
		if from >= 0 {
			to = k.Index // The next member takes its place.
			return false
		}
		if end := v.Index + len(v.Raw); k.Str == name {
			from, to = k.Index, end
		} else {
			before = end
		}
		return true
	})
	last := from >= 0 && endsAt(d, to)
	if last && before >= 0 {
		from = before
	}
	if from < 0 {
		return d
	}
	return append(slices.Clone(d[:from]), d[to:]...)
}

// endsAt reports whether an object ends at a place, after white space.
func endsAt(d document, at int) bool {
	rest := bytes.TrimLeft(d[at:], " \t\r\n")
	return len(rest) > 0 && rest[0] == '}'
}

func empty(v gjson.Result) bool { return v.IsObject() && len(v.Map()) == 0 }

// isEmpty reports whether no property is left.
func (d document) isEmpty() bool { return empty(gjson.ParseBytes(d)) }

// blocked returns the first prefix of the names that exists and is not an object, or "".
func (d document) blocked(names []property.Name) string {
	for n := 1; n < len(names); n++ {
		if v, _, err := property.Walk(gjson.ParseBytes(d), names[:n]); err == nil && v.Exists() && !v.IsObject() {
			return strings.Join(nameStrings(names[:n]), ".")
		}
	}
	return ""
}

// checkProperty returns an error if no document can have a property.
func checkProperty(of string) error {
	if !utf8.ValidString(of) {
		return provider.NewError(provider.Invalid, "property %.64q is not UTF-8", of)
	}
	return nil
}

// split returns the names in a property.
func split(of string) []string {
	names, _ := property.Split(of)
	return nameStrings(names)
}

func nameStrings(names []property.Name) []string {
	var all []string
	for _, n := range names {
		all = append(all, n.Text)
	}
	return all
}

// pathOf returns the path of names for sjson, which takes a number as a list index unless it is prefixed with a colon.
func pathOf(names []property.Name) string {
	var all []string
	for _, n := range names {
		s := escape(n.Text)
		if strings.Trim(s, "0123456789") == "" || s == "-1" {
			s = ":" + s
		}
		all = append(all, s)
	}
	return strings.Join(all, ".")
}

// syntax holds the characters with a special meaning in a path for sjson.
const syntax = `\.*?#@!|{}[]()<>=%"~:`

func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if strings.IndexByte(syntax, name[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}
