package template

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// absent is the failure for a value that is missing or null. name is its name in the template; empty if it has none.
func absent(name string) error {
	if name == "" {
		return &failure{"a value is missing or null; use default, or test it with if"}
	}
	return &failure{fmt.Sprintf("%q is missing or null; use default, or test it with if", name)}
}

// A noKeyError is for a key that does not exist. Its name is shown if the template has it as a literal, because it can
// be a value otherwise.
type noKeyError struct{ name string }

func (e *noKeyError) Error() string { return "there is no such key" }

// index returns an element of nested lists and dicts. It fails for keys that do not exist: text/template would return
// an empty value, which would become the secret value.
func index(v any, keys ...any) (any, error) { return elementAt(v, keys, false) }

// askIndex is index where the value is only tested: in conditions, and by functions such as default.
func askIndex(v any, keys ...any) (any, error) { return elementAt(v, keys, true) }

func elementAt(v any, keys []any, ask bool) (any, error) {
	for _, key := range keys {
		found, err := element(reflect.ValueOf(v), key)
		if err != nil {
			return nil, err
		}
		if !found.IsValid() {
			if !ask {
				return nil, &noKeyError{name: fmt.Sprint(key)}
			}
			if t := reflect.TypeOf(v).Elem(); t.Kind() == reflect.String {
				return "", nil
			}
			return nil, nil
		}
		v = found.Interface()
	}
	return v, nil
}

// element returns an element of a list, dict or text; the zero Value if a dict has no such key.
func element(v reflect.Value, key any) (reflect.Value, error) {
	if !v.IsValid() {
		return v, absent("")
	}
	if _, number := v.Interface().(json.Number); number {
		return v, &failure{"a number has no elements"}
	}
	switch v.Kind() { //nolint:exhaustive // The others have no elements.
	case reflect.Map:
		k := reflect.ValueOf(key)
		if !k.IsValid() || k.Type() != v.Type().Key() {
			return v, &failure{"the type of a key is wrong"}
		}
		return v.MapIndex(k), nil
	case reflect.Slice, reflect.Array, reflect.String:
		d, ok := decimalOf(key)
		if !ok || !d.whole() {
			return v, &failure{"the number of an element must be an integer"}
		}
		i, err := d.toInt64()
		if err != nil || i < 0 || i >= int64(v.Len()) {
			return v, &failure{"there is no such element"}
		}
		return v.Index(int(i)), nil
	}
	return v, &failure{"a value has no elements"}
}

// get returns a value of a dict, and fails for keys that do not exist.
func get(dict map[string]any, key string) (any, error) {
	v, ok := dict[key]
	if !ok {
		return nil, &noKeyError{name: key}
	}
	return v, nil
}

// askGet is get where the value is only tested, as in sprig.
func askGet(dict map[string]any, key string) any {
	if v, ok := dict[key]; ok {
		return v
	}
	return ""
}

// need returns an argument that must have a value.
func (r *run) need(name string, v any) (any, error) {
	if v == nil {
		return nil, absent(name)
	}
	return v, r.budget.spend(1, 0)
}

// A heldZero is zero in a form that text/template finds false: it is a list without elements. It exists only between
// test and tested.
type heldZero []json.Number

// test returns a value whose truth is tested.
func test(v any) any {
	if n, ok := v.(json.Number); ok && empty(n) {
		return heldZero{n}[:0]
	}
	return v
}

// tested returns the value that was given to test.
func tested(v any) any {
	if z, ok := v.(heldZero); ok {
		return z[:1][0]
	}
	return v
}

// length returns the argument of len, which must not be a number.
func length(v any) (any, error) {
	if _, ok := v.(json.Number); ok {
		return nil, &failure{"a number has no length"}
	}
	return v, nil
}
