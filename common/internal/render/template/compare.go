package template

import (
	"encoding/json"
	"reflect"
	"strings"
)

// The functions of this file replace those of text/template and sprig, which cannot compare numbers of documents.

// equal reports whether a value equals one of the others.
func equal(first any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, &failure{"there is nothing to compare with"}
	}
	for _, other := range others {
		if same, err := equalTo(first, other); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func notEqual(a, b any) (bool, error) {
	same, err := equalTo(a, b)
	return !same, err
}

func equalTo(a, b any) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	x, xIsNumber := decimalOf(a)
	y, yIsNumber := decimalOf(b)
	if xIsNumber && yIsNumber {
		return x.compare(y) == 0, nil
	}
	s, t := reflect.ValueOf(a), reflect.ValueOf(b)
	switch {
	case xIsNumber != yIsNumber || s.Kind() != t.Kind():
		return false, &failure{"values of different types cannot be compared"}
	case s.Kind() == reflect.String:
		return s.String() == t.String(), nil
	case s.Type() != t.Type() || !s.Comparable() || !t.Comparable():
		return false, &failure{"values of this type cannot be compared"}
	}
	return s.Equal(t), nil
}

// ordered returns a comparison by order; it is true if accept is, of the result -1, 0 or 1.
func ordered(accept func(int) bool) func(a, b any) (bool, error) {
	return func(a, b any) (bool, error) {
		x, xIsNumber := decimalOf(a)
		y, yIsNumber := decimalOf(b)
		if xIsNumber && yIsNumber {
			return accept(x.compare(y)), nil
		}
		s, t := reflect.ValueOf(a), reflect.ValueOf(b)
		switch {
		case xIsNumber != yIsNumber || s.Kind() != t.Kind():
			return false, &failure{"values of different types cannot be compared"}
		case s.Kind() != reflect.String:
			return false, &failure{"values of this type cannot be compared"}
		}
		return accept(strings.Compare(s.String(), t.String())), nil
	}
}

// deepEqual is reflect.DeepEqual, but for numbers, which are equal if their values are.
func deepEqual(a, b any) bool {
	if x, ok := decimalOf(a); ok {
		if y, ok := decimalOf(b); ok {
			return x.compare(y) == 0
		}
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if other, ok := b[k]; !ok || !deepEqual(v, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i, v := range a {
			if !deepEqual(v, b[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// elements returns the elements of a list.
func elements(list any) ([]any, error) {
	if all, ok := list.([]any); ok {
		return all, nil
	}
	v := reflect.ValueOf(list)
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return nil, &failure{"an argument is not a list"}
	}
	all := make([]any, v.Len())
	for i := range all {
		all[i] = v.Index(i).Interface()
	}
	return all, nil
}

func contains(list []any, v any) bool {
	for _, e := range list {
		if deepEqual(e, v) {
			return true
		}
	}
	return false
}

// has reports whether a list has an element.
func has(v, list any) (bool, error) {
	if list == nil {
		return false, nil
	}
	all, err := elements(list)
	return contains(all, v), err
}

// uniq returns the elements of a list, each once.
func uniq(list any) ([]any, error) {
	all, err := elements(list)
	once := []any{}
	for _, v := range all {
		if !contains(once, v) {
			once = append(once, v)
		}
	}
	return once, err
}

// without returns the elements of a list that are not among others.
func without(list any, others ...any) ([]any, error) {
	return kept(list, func(v any) bool { return !contains(others, v) })
}

// compact returns the elements of a list that are not empty.
func compact(list any) ([]any, error) {
	return kept(list, func(v any) bool { return !empty(v) })
}

// kept returns the elements of a list that keep accepts.
func kept(list any, keep func(any) bool) ([]any, error) {
	all, err := elements(list)
	some := []any{}
	for _, v := range all {
		if keep(v) {
			some = append(some, v)
		}
	}
	return some, err
}

// empty reports whether a value is absent, or zero, or has no elements.
func empty(v any) bool {
	if n, ok := v.(json.Number); ok {
		d, ok := parseDecimal(string(n))
		return ok && d.digits == ""
	}
	r := reflect.ValueOf(v)
	switch r.Kind() { //nolint:exhaustive // The others are scalars.
	case reflect.Invalid:
		return true
	case reflect.Array, reflect.Slice, reflect.Map, reflect.String:
		return r.Len() == 0
	case reflect.Struct:
		return false
	}
	return r.IsZero()
}

// fallback returns the first of given, or value if that is empty.
func fallback(value any, given ...any) any {
	if len(given) == 0 || empty(given[0]) {
		return value
	}
	return given[0]
}

// coalesce returns the first value that is not empty.
func coalesce(values ...any) any {
	for _, v := range values {
		if !empty(v) {
			return v
		}
	}
	return nil
}

// allSet and anySet report whether all values, or any of them, are not empty.
func allSet(values ...any) bool {
	for _, v := range values {
		if empty(v) {
			return false
		}
	}
	return true
}

func anySet(values ...any) bool {
	for _, v := range values {
		if !empty(v) {
			return true
		}
	}
	return false
}
