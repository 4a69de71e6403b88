package render

import (
	"encoding/json"
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// maxPath is the longest property that is read as a path.
const maxPath = 512

// growing matches the syntax of gjson by which a short path over a small secret yields gigabytes:
// modifiers that repeat or escape what they are given, documents put together from several paths,
// and literals. One property is one value; putting values together is a template's work.
var growing = regexp.MustCompile(`@(tostr|pretty|group|dig)|(^|[.|(\[])\s*[\[{]|(^|[.|])!`)

// Property takes one value out of a secret that holds JSON. A top-level key that is spelled exactly
// like the property wins; otherwise the property is a path in gjson syntax. Strings come without
// quotes, everything else as the JSON text that it is.
func Property(data []byte, property string) ([]byte, error) {
	if !valid(data) {
		return nil, store.NewError(store.Invalid, "its value is not JSON, so it has no property %.64q; remove the property or store JSON", property)
	}
	doc := gjson.ParseBytes(data)
	if doc.IsObject() {
		if v, ok := member(doc, property); ok {
			return text(v), nil
		}
	}
	if len(property) > maxPath || growing.MatchString(property) {
		return nil, store.NewError(store.Invalid, "the property %.64q is not served: a path has at most %d characters, none of the modifiers @tostr, @pretty, @group and @dig, and puts no documents together; name one value", property, maxPath)
	}
	v := doc.Get(property)
	if !v.Exists() {
		return nil, store.NewError(store.NotFound, "it has no property %.64q", property)
	}
	return text(v), nil
}

// valid reports whether data is JSON. Unlike gjson's own check it bounds the depth, because what is
// nested without end eats the stack.
func valid(data []byte) bool { return json.Valid(data) }

// member returns the first member of an object whose key is spelled exactly like key.
func member(doc gjson.Result, key string) (found gjson.Result, ok bool) {
	doc.ForEach(func(k, v gjson.Result) bool {
		if k.Str == key {
			found, ok = v, true
		}
		return !ok
	})
	return found, ok
}

// A KeyValue is one member of a JSON object.
type KeyValue struct {
	Key   string
	Value []byte
}

// Extract returns the members of a secret that holds a JSON object, in their order.
func Extract(data []byte) ([]KeyValue, error) {
	if !valid(data) {
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

func text(v gjson.Result) []byte {
	switch {
	case v.Type == gjson.String:
		return []byte(v.Str)
	case v.Raw == "":
		return []byte(v.String()) // A count, as in hosts.#, stands nowhere in the text.
	}
	return []byte(v.Raw)
}
