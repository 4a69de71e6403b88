package kv

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxValue is the maximum size of a value, in bytes: the default limit of Vault's integrated storage for an
// entry, minus the overhead of Vault and its encryption. A storage with a smaller limit returns its own error.
const maxValue = 1<<20 - 4<<10

var (
	errNoObject = errors.New("the value is not a JSON object, as Vault requires; push it with a property, or make an object of it with a template")
	errNoText   = errors.New("the value is not UTF-8 text, and Vault keeps JSON objects; encode it with a template ({{ b64enc .KEY }}), and push it with a property")
	errEmpty    = errors.New("the value is an empty object, which KV v1 does not allow")
	errRounded  = errors.New("the value has a number that KV v2 would round, because it reads numbers as floating point; write it as a string")
)

// object checks a value to write, and returns it in a form that can be compared.
func (c *Client) object(key string, data []byte) (map[string]any, error) {
	what := about(provider.Ref{Key: key})
	if len(data) > maxValue {
		return nil, provider.NewError(provider.Invalid, "%s: the value has %d bytes, at most %d are allowed", what, len(data), maxValue)
	}
	object, err := decodeObject(data, c.engine)
	if err == nil && len(object) < c.engine.minimum() {
		err = errEmpty
	}
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "%s: %s", what, err)
	}
	// Vault stores its own spelling, which can be longer.
	if raw, err := json.Marshal(object); err != nil || len(raw) > maxValue {
		return nil, provider.NewError(provider.Invalid, "%s: the value has %d bytes as Vault encodes it, at most %d are allowed", what, len(raw), maxValue)
	}
	return object, nil
}

// holds reports whether the value in seen is the object.
func (c *Client) holds(seen []byte, object map[string]any) bool {
	has, err := decodeObject(seen, c.engine)
	return err == nil && reflect.DeepEqual(has, object)
}

// spelled spells an object as push spells the JSON that it makes from a Secret. Values in sync are then equal,
// although Vault escapes differently.
func spelled(object json.RawMessage) []byte {
	members, err := decoded(object)
	if err != nil {
		return object
	}
	return provider.EncodeJSON(members)
}

func decoded(data []byte) (object map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&object)
	return object, err
}

func decodeObject(data []byte, e writing) (map[string]any, error) {
	if !utf8.Valid(data) {
		return nil, errNoText
	}
	if !json.Valid(data) || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, errNoObject
	}
	object, err := decoded(data)
	if err != nil {
		return nil, errNoObject
	}
	_, err = numbers(object, e)
	return object, err
}

// numbers replaces the numbers in a decoded value by the result of the engine's number.
func numbers(v any, e writing) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		return e.number(v)
	case map[string]any:
		for k := range v {
			if v[k], err = numbers(v[k], e); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = numbers(v[i], e); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// number implements writing: KV v1 stores numbers as they are spelled.
func (kv1) number(n json.Number) (any, error) { return n, nil }

// number implements writing. KV v2 stores numbers as they are spelled, but reads them as floating point. A
// number that floating point cannot hold could not be read again, or would change.
func (kv2) number(n json.Number) (any, error) {
	f, err := n.Float64()
	if err != nil || digits(n.String()) != digits(strconv.FormatFloat(f, 'e', -1, 64)) {
		return nil, errRounded
	}
	return f, nil
}

// digits returns the significant digits of a number.
func digits(n string) string {
	n, _, _ = strings.Cut(strings.ToLower(n), "e")
	return strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(n), "0")
}
