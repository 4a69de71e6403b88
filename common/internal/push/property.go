package push

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// syntax holds the characters that mean something in a path that is read. What is written has one plain
// place, so they are taken literally after a backslash only.
const syntax = `*?#@!|{}[]()<>=%"~:`

// emptyObject is what a secret begins as whose properties are pushed.
var emptyObject = []byte("{}")

// A document is a secret that holds a JSON object. It is changed in place: what is not named keeps its
// bytes.
type document []byte

// parse checks that data is a JSON object.
func parse(data []byte) (document, error) {
	if !json.Valid(data) || !gjson.ParseBytes(data).IsObject() {
		return nil, provider.NewError(provider.Invalid, "its value is no JSON object, so it can hold no property; push the whole secret, or to another key")
	}
	return document(data), nil
}

// has returns the value of a property, as a Secret would hold it.
func (d document) has(property string) ([]byte, bool) {
	v := gjson.GetBytes(d, d.path(property))
	if !v.Exists() {
		return nil, false
	}
	if v.Type == gjson.String {
		return []byte(v.Str), true
	}
	return []byte(v.Raw), true
}

// set returns the document with a property set to a value.
func (d document) set(property string, value []byte) (document, error) {
	if !utf8.Valid(value) {
		return nil, provider.NewError(provider.Invalid, "property %.64q: the value is not text, and JSON holds text only; push it as a whole secret, or encode it with a template", property)
	}
	if at := d.blocked(property); at != "" {
		return nil, provider.NewError(provider.Invalid, "property %.64q: %.64q is no JSON object there; choose another property", property, at)
	}
	out, err := sjson.SetBytes(d, forWrite(d.path(property)), string(value))
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "property %.64q cannot be set; choose another", property)
	}
	return document(out), nil
}

// without returns the document less a property, and less the objects that it was the last member of.
func (d document) without(property string) (document, error) {
	segments := splitRaw(d.path(property))
	for n := len(segments); n > 0; n-- {
		path := strings.Join(segments[:n], ".")
		if n < len(segments) && !empty(gjson.GetBytes(d, path)) {
			break
		}
		out, err := sjson.DeleteBytes(d, forWrite(path))
		if err != nil {
			return nil, provider.NewError(provider.Invalid, "property %.64q cannot be removed", property)
		}
		d = document(out)
	}
	return d, nil
}

func empty(v gjson.Result) bool { return v.IsObject() && len(v.Map()) == 0 }

// isEmpty reports whether no property is left.
func (d document) isEmpty() bool { return empty(gjson.ParseBytes(d)) }

// path returns where a property stands: under the top-level key that is spelled exactly like it, as when
// it is read, else where the path leads.
func (d document) path(property string) string {
	literal := escape(property)
	if gjson.GetBytes(d, literal).Exists() {
		return literal
	}
	var segments []string
	for _, s := range split(property) {
		segments = append(segments, escape(s))
	}
	return strings.Join(segments, ".")
}

// blocked returns the beginning of a path that is there and no object.
func (d document) blocked(property string) string {
	segments := splitRaw(d.path(property))
	for n := 1; n < len(segments); n++ {
		path := strings.Join(segments[:n], ".")
		if v := gjson.GetBytes(d, path); v.Exists() && !v.IsObject() {
			return path
		}
	}
	return ""
}

// checkProperty says what is wrong with a property that is to be written.
func checkProperty(property string) error {
	for _, s := range split(property) {
		if s == "" {
			return provider.NewError(provider.Invalid, "property %.64q has an empty part; write it as a or as a.b", property)
		}
	}
	if !utf8.ValidString(property) {
		return provider.NewError(provider.Invalid, "property %.64q is not UTF-8", property)
	}
	plain := strings.NewReplacer(`\.`, "", `\\`, "").Replace(property)
	if strings.ContainsAny(plain, syntax+`\`) || strings.ContainsFunc(plain, func(r rune) bool { return r < ' ' }) {
		return provider.NewError(provider.Invalid, `property %.64q names no one place: it must not hold a control character or one of %s, and \ only before a dot`, property, syntax)
	}
	return nil
}

// Literal returns the property that stands for a top-level key, whatever characters it has.
func Literal(key string) string {
	return strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(key)
}

// split takes a property apart at its dots, but for those after a backslash, and drops the backslashes.
func split(property string) []string {
	segments := splitRaw(property)
	for i, s := range segments {
		segments[i] = strings.NewReplacer(`\\`, `\`, `\`, ``).Replace(s)
	}
	return segments
}

// splitRaw is split that keeps the backslashes.
func splitRaw(path string) []string {
	var segments []string
	start := 0
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '\\':
			i++
		case '.':
			segments = append(segments, path[start:i])
			start = i + 1
		}
	}
	return append(segments, path[start:])
}

// forWrite spells a path of gjson for sjson, which takes a number for a place in a list unless told
// otherwise.
func forWrite(path string) string {
	segments := splitRaw(path)
	for i, s := range segments {
		if strings.Trim(s, "0123456789") == "" || s == "-1" {
			segments[i] = ":" + s
		}
	}
	return strings.Join(segments, ".")
}

// escape spells a key for gjson.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c == '\\' || c == '.' || strings.IndexByte(syntax, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(key[i])
	}
	return b.String()
}
