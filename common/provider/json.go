package provider

import (
	"bytes"
	stdjson "encoding/json"
	"strings"

	"sigs.k8s.io/json"

	"github.com/direct-secrets/direct-secrets/common/internal/exactjson"
)

// EncodeJSON returns a value as JSON with sorted keys and without the escapes for HTML. The value must be one that can be encoded.
func EncodeJSON(v any) []byte {
	var b bytes.Buffer
	e := stdjson.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// DecodeMetadata decodes the metadata of a Target, if there is any. No unknown or duplicate field is silently ignored. allowed lists
// the fields for the error, which has class Invalid.
func DecodeMetadata(raw []byte, into any, allowed string) error {
	if raw == nil {
		return nil
	}
	if !stdjson.Valid(raw) {
		return NewError(Invalid, "metadata: is not one JSON object; allowed are %s", allowed)
	}
	strict, err := json.UnmarshalStrict(raw, into)
	if err == nil && len(strict) > 0 {
		err = strict[0]
	}
	if err != nil {
		path, fault := JSONFault(err)
		return NewError(Invalid, "%s: %.200s; allowed are %s", strings.TrimSuffix("metadata."+path, "."), fault, allowed)
	}
	return nil
}

// DecodeStrings returns the members of a JSON object whose values are all strings; false for any other value. That includes an object
// that encoding/json would change: with null, with a member twice, or with text that is not Unicode.
func DecodeStrings(raw []byte) (map[string]string, bool) {
	var members map[string]*string
	if exactjson.Check(raw) != nil || stdjson.Unmarshal(raw, &members) != nil || members == nil {
		return nil, false
	}
	text := make(map[string]string, len(members))
	for name, value := range members {
		if value == nil {
			return nil, false
		}
		text[name] = *value
	}
	return text, true
}
