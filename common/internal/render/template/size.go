package template

import (
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"
)

const (
	// maxValue limits a value that is printed or passed to a function that reads all of it, in bytes. It is more than
	// maxOutput because an encoded value can be longer than the output.
	maxValue = 2 << 20
	// maxElements limits the elements of a list or dict that a function makes.
	maxElements = 100_000
	// maxDepth limits the nesting of a value.
	maxDepth = 100

	scalarSize    = 8
	containerSize = 32
)

// sizeOf returns the approximate size of v as text; shared parts count each time. It returns an error if v is larger
// than maxValue, nested deeper than maxDepth, or contains itself.
func sizeOf(v reflect.Value) (int, error) {
	m := meter{left: maxValue}
	return m.size(v)
}

// size is sizeOf, and fails for contents that m refuses.
func (m *meter) size(v reflect.Value) (int, error) {
	m.walk(v, 0)
	switch {
	case m.refused != nil:
		return 0, m.refused
	case m.deep:
		return 0, &failure{fmt.Sprintf("a value is nested more than %d deep, or contains itself", maxDepth)}
	case m.left < 0:
		return 0, &failure{fmt.Sprintf("a value is larger than %d KiB", maxValue>>10)}
	}
	return maxValue - m.left, nil
}

// A meter measures a value, and stops when it is too large.
type meter struct {
	left int
	deep bool
	// present and text refuse values that are null, and strings that are not text, also inside of lists and dicts.
	present, text bool
	// refused is why the value is refused.
	refused error
}

// notText is the failure for bytes given to a function on text.
var notText = &failure{"a value is not text, so it would be changed; use b64enc"}

// refuse stops the measurement.
func (m *meter) refuse(err error) { m.refused, m.left = err, -1 }

func (m *meter) walk(v reflect.Value, depth int) {
	if depth > maxDepth {
		m.deep = true
		m.left = -1
	}
	if m.left < 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if m.left -= scalarSize + v.Len(); m.text && !utf8.ValidString(v.String()) {
			m.refuse(notText)
		}
	case reflect.Interface:
		m.walk(v.Elem(), depth)
	case reflect.Invalid:
		if m.left -= scalarSize; m.present {
			m.refuse(absent(""))
		}
	case reflect.Pointer:
		m.left -= scalarSize
		m.walk(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		m.slice(v, depth)
	case reflect.Map:
		m.left -= containerSize + 2*depth
		for it := v.MapRange(); it.Next() && m.left >= 0; {
			m.walk(it.Key(), depth+1)
			m.walk(it.Value(), depth+1)
		}
	case reflect.Struct:
		m.fields(v, depth)
	default:
		m.left -= scalarSize
	}
}

func (m *meter) slice(v reflect.Value, depth int) {
	m.left -= containerSize + 2*depth
	switch v.Type().Elem().Kind() {
	case reflect.Int, reflect.Uint8:
		m.left -= scalarSize * v.Len()
		return
	}
	for i := 0; i < v.Len() && m.left >= 0; i++ {
		m.left -= 2 * depth
		m.walk(v.Index(i), depth+1)
	}
}

// fields measures a struct. It does not measure the fields of times: their zones are large and shared.
func (m *meter) fields(v reflect.Value, depth int) {
	m.left -= containerSize
	if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[time.Location]() {
		return
	}
	for i := range v.NumField() {
		m.walk(v.Field(i), depth+1)
	}
}

// lengthOf returns the bytes of a string, or sixteen for each element of a list or dict, whatever the elements
// contain.
func lengthOf(v reflect.Value) int {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		return lengthOf(v.Elem())
	case reflect.String:
		return v.Len()
	case reflect.Slice, reflect.Array, reflect.Map:
		return 16 * v.Len()
	}
	return 0
}
