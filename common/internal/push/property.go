package push

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// syntax holds the characters with a special meaning in a path that is read. A path to write names exactly one place,
// so a property must not contain them.
const syntax = `*?#@!|{}[]()<>=%"~:`

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

// has returns the value of a property, in the form that a Secret would hold.
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
		return nil, provider.NewError(provider.Invalid, "property %.64q: the value is not UTF-8 text, as JSON requires; push it as a whole secret, or encode it with a template", property)
	}
	if at := d.blocked(property); at != "" {
		return nil, provider.NewError(provider.Invalid, "property %.64q: %.64q is not a JSON object in the remote secret; choose another property", property, at)
	}
	out, err := sjson.SetBytes(d, forWrite(d.path(property)), string(value))
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "property %.64q cannot be set; choose another", property)
	}
	return document(out), nil
}

// without returns the document without a property, and without the objects that this leaves empty.
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

// path returns the gjson path of a property: the top-level key spelled exactly like the property if it exists (as a
// read does it), otherwise the nested path.
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

// blocked returns the first prefix of the path that exists and is not an object, or "".
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

// checkProperty returns an error if a property cannot be written.
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
		return provider.NewError(provider.Invalid, `property %.64q is not a plain path: it must not have a control character or one of %s, and \ only before a dot`, property, syntax)
	}
	return nil
}

// Literal returns the property that means a top-level key, whatever characters the key has.
func Literal(key string) string {
	return strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(key)
}

// split splits a property at its dots, except escaped ones, and removes the backslashes.
func split(property string) []string {
	segments := splitRaw(property)
	for i, s := range segments {
		segments[i] = strings.NewReplacer(`\\`, `\`, `\`, ``).Replace(s)
	}
	return segments
}

// splitRaw is like split, but keeps the backslashes.
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

// forWrite converts a gjson path for sjson, which takes a number as a list index unless it is prefixed with a colon.
func forWrite(path string) string {
	segments := splitRaw(path)
	for i, s := range segments {
		if strings.Trim(s, "0123456789") == "" || s == "-1" {
			segments[i] = ":" + s
		}
	}
	return strings.Join(segments, ".")
}

// escape escapes a key for gjson.
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
