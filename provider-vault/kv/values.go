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

// maxValue is the largest value that is written, in bytes: the default of Vault's integrated storage for an
// entry, less what Vault and its encryption add. A storage that takes less says so itself.
const maxValue = 1<<20 - 4<<10

var (
	errNoObject = errors.New("the value is no JSON object, and Vault holds no others; push it with a property, or make an object of it with a template")
	errEmpty    = errors.New("the value is an empty object, which KV v1 does not take")
	errRounded  = errors.New("the value has a number that KV v2 would round, since it reads numbers as floating point; write it as a string")
)

// object checks a value that is to be written, and returns it in a form that can be compared.
func (c *Client) object(key string, data []byte) (map[string]any, error) {
	what := about(provider.Ref{Key: key})
	if len(data) > maxValue {
		return nil, provider.NewError(provider.Invalid, "%s: the value has %d bytes, and at most %d are written", what, len(data), maxValue)
	}
	object, err := decodeObject(data, c.engine)
	if err == nil && len(object) < c.engine.minimum() {
		err = errEmpty
	}
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "%s: %s", what, err)
	}
	// Vault stores its own spelling, which may be longer.
	if raw, err := json.Marshal(object); err != nil || len(raw) > maxValue {
		return nil, provider.NewError(provider.Invalid, "%s: the value has %d bytes as Vault spells it, and at most %d are written", what, len(raw), maxValue)
	}
	return object, nil
}

// holds reports whether a value that was seen is the object.
func (c *Client) holds(seen []byte, object map[string]any) bool {
	has, err := decodeObject(seen, c.engine)
	return err == nil && reflect.DeepEqual(has, object)
}

// spelled returns an object as push spells those that it makes of a Secret, so that what is in step shows at
// once: Vault has escapes of its own.
func spelled(object json.RawMessage) []byte {
	members, err := decoded(object)
	if err != nil {
		return object
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(members) != nil {
		return object
	}
	return bytes.TrimSpace(b.Bytes())
}

func decoded(data []byte) (object map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&object)
	return object, err
}

func decodeObject(data []byte, e writing) (map[string]any, error) {
	if !utf8.Valid(data) || !json.Valid(data) || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, errNoObject
	}
	object, err := decoded(data)
	if err != nil {
		return nil, errNoObject
	}
	_, err = numbers(object, e)
	return object, err
}

// numbers replaces the numbers in a decoded value by what an engine makes of them.
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

// number: KV v1 keeps numbers as they are spelled.
func (kv1) number(n json.Number) (any, error) { return n, nil }

// number: KV v2 stores numbers as they are spelled, but reads floating point. What that cannot hold could
// never be read again, or not as it was.
func (kv2) number(n json.Number) (any, error) {
	f, err := n.Float64()
	if err != nil || digits(n.String()) != digits(strconv.FormatFloat(f, 'e', -1, 64)) {
		return nil, errRounded
	}
	return f, nil
}

// digits returns the digits of a number that count.
func digits(n string) string {
	n, _, _ = strings.Cut(strings.ToLower(n), "e")
	return strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(n), "0")
}
