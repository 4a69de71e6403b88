package render

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// Property takes one value out of a secret that holds JSON. A top-level key that is spelled exactly
// like the property wins; otherwise the property is a path in gjson syntax. Strings come without
// quotes, everything else as the JSON text that it is.
func Property(data []byte, property string) ([]byte, error) {
	if !gjson.ValidBytes(data) {
		return nil, store.NewError(store.Invalid, "its value is not JSON, so it has no property %q; remove the property or store JSON", property)
	}
	doc := gjson.ParseBytes(data)
	if doc.IsObject() {
		if v := doc.Get(literal(property)); v.Exists() {
			return text(v), nil
		}
	}
	v := doc.Get(property)
	if !v.Exists() {
		return nil, store.NewError(store.NotFound, "it has no property %q", property)
	}
	return text(v), nil
}

// A KeyValue is one member of a JSON object.
type KeyValue struct {
	Key   string
	Value []byte
}

// Extract returns the members of a secret that holds a JSON object, in their order.
func Extract(data []byte) ([]KeyValue, error) {
	if !gjson.ValidBytes(data) {
		return nil, store.NewError(store.Invalid, "its value is not JSON; extract needs a JSON object")
	}
	doc := gjson.ParseBytes(data)
	if !doc.IsObject() {
		return nil, store.NewError(store.Invalid, "its value is JSON but not an object; extract needs a JSON object")
	}
	var kvs []KeyValue
	doc.ForEach(func(k, v gjson.Result) bool {
		kvs = append(kvs, KeyValue{Key: k.String(), Value: text(v)})
		return true
	})
	return kvs, nil
}

// ConvertKey replaces each character that a Secret key may not hold by "_".
func ConvertKey(key string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			return c
		}
		return '_'
	}, key)
}

func text(v gjson.Result) []byte {
	if v.Type == gjson.String {
		return []byte(v.Str)
	}
	return []byte(v.Raw)
}

// literal escapes what gjson would read as syntax.
func literal(key string) string {
	var b strings.Builder
	for _, c := range key {
		if strings.ContainsRune(`\.*?|#@!{}[]()=<>%"':`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
