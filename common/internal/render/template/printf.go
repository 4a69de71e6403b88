package template

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxVerbs limits the verbs of a format.
	maxVerbs = 1_000
	// maxRounded limits the exponent of a number that a format rounds.
	maxRounded = 1_100
)

var errFormat = &failure{"a verb of the format does not fit its value, or values and verbs differ in number"}

// printf is fmt.Sprintf, but fails where that writes an error into its result, such as %!d(string=x).
func printf(format string, args ...any) (string, error) {
	args = slices.Clone(args)
	for i, a := range args {
		if n, ok := a.(json.Number); ok {
			args[i] = formatted{n}
		}
	}
	next, reordered := 0, false
	take := func(index, star string) (any, bool) {
		if index != "" {
			n, err := strconv.Atoi(strings.Trim(index, "[]"))
			if err != nil {
				return nil, false
			}
			next, reordered = n-1, true
		}
		if star != "*" {
			return 0, true
		}
		if next < 0 || next >= len(args) {
			return nil, false
		}
		next++
		return args[next-1], true
	}
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[7] == "%" {
			continue
		}
		width, ok := take(m[1], m[2])
		precision, ok2 := take(m[4], m[5])
		v, ok3 := take(m[6], "*")
		if !ok || !ok2 || !ok3 || !isInt(width) || !isInt(precision) || m[7] == "" || !fits(m[7][0], reflect.ValueOf(v)) {
			return "", errFormat
		}
	}
	if !reordered && next < len(args) {
		return "", errFormat
	}
	return fmt.Sprintf(format, args...), nil
}

// isInt reports whether fmt accepts a value as a width or precision.
func isInt(v any) bool {
	r := reflect.ValueOf(v)
	return r.IsValid() && (r.CanInt() && abs(r.Int()) <= 1_000_000 || r.CanUint() && r.Uint() <= 1_000_000)
}

// fits reports whether a verb formats a value, and each element of a list or dict (pkg.go.dev/fmt).
func fits(verb byte, v reflect.Value) bool {
	if !v.IsValid() {
		return false
	}
	if verb == 'v' || verb == 'T' {
		return true
	}
	if n, ok := v.Interface().(formatted); ok {
		return n.fits(verb)
	}
	if _, ok := v.Interface().(fmt.Stringer); ok && (verb == 's' || verb == 'q') {
		return true
	}
	switch v.Kind() { //nolint:exhaustive // The others have no verb of their own.
	case reflect.Interface:
		return fits(verb, v.Elem())
	case reflect.Bool:
		return verb == 't'
	case reflect.String:
		_, number := v.Interface().(json.Number)
		return verb == 's' || !number && (verb == 'x' || verb == 'X' || verb == 'q' && utf8.ValidString(v.String()))
	case reflect.Float32, reflect.Float64:
		return strings.IndexByte("beEfFgGxX", verb) >= 0
	case reflect.Slice, reflect.Array:
		return allFit(verb, v)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !fits(verb, it.Key()) || !fits(verb, it.Value()) {
				return false
			}
		}
		return true
	}
	return (v.CanInt() || v.CanUint()) && strings.IndexByte("bcdoOqxXU", verb) >= 0
}

func allFit(verb byte, list reflect.Value) bool {
	for i := range list.Len() {
		if !fits(verb, list.Index(i)) {
			return false
		}
	}
	return true
}

// formatted is a number of a document in a format. Each verb writes exactly the number, or its rounding.
type formatted struct{ number json.Number }

func (f formatted) fits(verb byte) bool {
	d, ok := parseDecimal(string(f.number))
	switch {
	case verb == 's':
		return true
	case !ok || len(d.digits) > maxDigits:
		return false
	case strings.IndexByte("bdoOxX", verb) >= 0:
		return d.whole() && d.exponent <= maxDigits
	}
	return strings.IndexByte("eEfFgG", verb) >= 0 && d.exponent <= maxRounded && d.exponent >= -maxRounded
}

// Format implements fmt.Formatter for the verbs that fit.
func (f formatted) Format(s fmt.State, verb rune) {
	format := fmt.FormatString(s, verb)
	d, _ := parseDecimal(string(f.number))
	switch verb {
	case 'b', 'd', 'o', 'O', 'x', 'X':
		digits := d.digits + strings.Repeat("0", max(d.exponent-len(d.digits), 0))
		n, _ := new(big.Int).SetString("0"+digits, 10)
		if d.negative {
			n.Neg(n)
		}
		_, _ = fmt.Fprintf(s, format, n)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		// Each digit needs less than four bits, and the exponent as many as digits before or after the point.
		precision := uint(64 + 4*(len(d.digits)+max(d.exponent, -d.exponent)))
		n, _, _ := big.ParseFloat(d.text(), 10, precision, big.ToNearestEven)
		_, _ = fmt.Fprintf(s, format, n)
	case 'T':
		_, _ = fmt.Fprintf(s, format, float64(0))
	default:
		_, _ = fmt.Fprintf(s, format, string(f.number))
	}
}
