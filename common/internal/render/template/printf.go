package template

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
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
	a := arguments{all: slices.Clone(args)}
	for i, v := range a.all {
		if n, ok := v.(json.Number); ok {
			a.all[i] = formatted{n}
		}
	}
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[7] != "%" && !a.fit(m) {
			return "", errFormat
		}
	}
	if !a.reordered && a.next < len(a.all) {
		return "", errFormat
	}
	return fmt.Sprintf(format, a.all...), nil
}

// arguments are those of a format, and the next one that a verb takes.
type arguments struct {
	all       []any
	next      int
	reordered bool
}

// fit reports whether a verb, as matched by verb, has the arguments that it needs.
func (a *arguments) fit(m []string) bool {
	for _, star := range []struct{ index, number string }{{m[1], m[2]}, {m[4], m[5]}} {
		if !a.seek(star.index) {
			return false
		}
		if star.number == "*" && !isInt(a.take()) {
			return false
		}
	}
	return a.seek(m[6]) && m[7] != "" && fits(m[7][0], reflect.ValueOf(a.take()))
}

// seek goes to the argument with an index, such as [2]; empty: it stays.
func (a *arguments) seek(index string) bool {
	if index == "" {
		return true
	}
	n, err := strconv.Atoi(strings.Trim(index, "[]"))
	a.next, a.reordered = n-1, true
	return err == nil && n > 0
}

// take returns the next argument; nil if there is none.
func (a *arguments) take() any {
	a.next++
	if a.next > len(a.all) {
		return nil
	}
	return a.all[a.next-1]
}

// A verb of a format, with its width and precision.
var verb = regexp.MustCompile(`%[-+# 0]*(\[\d*\])?(\d+|\*)?(\.(\[\d*\])?(\d+|\*)?)?(\[\d*\])?(.)?`)

// checkPrintf limits the result of a format. Width and precision apply to every element of an argument, and a format
// can name an argument many times.
func checkPrintf(r *run, args []reflect.Value) error {
	format := args[0].String()
	if strings.Count(format, "%") > maxVerbs {
		return &failure{"the format has more than 1000 verbs"}
	}
	total, largest, elements, number := len(format), 0, 1, 0
	for i := range args[1].Len() {
		a := args[1].Index(i).Elem()
		n, err := sizeOf(a)
		if err != nil {
			return err
		}
		total, largest = total+n, max(largest, n)
		switch {
		case a.CanInt():
			number = max(number, abs(a.Int()))
		case a.CanUint():
			number = maxValue
		case a.Kind() != reflect.String:
			elements = max(elements, n/scalarSize)
		}
	}
	again := strings.Contains(format, "[")
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		pad := max(padding(m[2], number), padding(m[5], number))
		if m[7] == "f" || m[7] == "F" {
			pad += 320 // The largest number has 309 digits.
		}
		if total += pad * elements; again {
			total += largest
		}
		if total > 2*maxValue {
			return tooLarge()
		}
	}
	return r.budget.spend(total/64, 0)
}

// padding returns the number of characters of a width. For a star it is the value of an argument.
func padding(width string, number int) int {
	if width == "*" {
		return min(number, maxValue)
	}
	n, err := strconv.Atoi(width)
	if err != nil && width != "" {
		return maxValue
	}
	return min(n, maxValue)
}

// isInt reports whether fmt accepts a value as a width or precision.
func isInt(v any) bool {
	r := reflect.ValueOf(v)
	return r.IsValid() && (r.CanInt() && abs(r.Int()) <= 1_000_000 || r.CanUint() && r.Uint() <= 1_000_000)
}

// fits reports whether a verb formats a value, and each element of a list or dict (pkg.go.dev/fmt).
func fits(verb byte, v reflect.Value) bool {
	switch {
	case !v.IsValid():
		return false
	case verb == 'v' || verb == 'T':
		return true
	case v.Kind() == reflect.Interface:
		return fits(verb, v.Elem())
	}
	switch own := v.Interface().(type) {
	case formatted:
		return own.fits(verb)
	case json.Number:
		return verb == 's'
	case fmt.Stringer:
		return verb == 's' || verb == 'q' || scalarFits(verb, v)
	}
	switch v.Kind() { //nolint:exhaustive // The others are scalars.
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
	return scalarFits(verb, v)
}

// scalarFits reports whether a verb formats a value that is no list or dict. %q would change bytes that are not text.
func scalarFits(verb byte, v reflect.Value) bool {
	if verb == 'q' && v.Kind() == reflect.String && !utf8.ValidString(v.String()) {
		return false
	}
	return strings.IndexByte(verbs[v.Kind()], verb) >= 0
}

// verbs are the verbs for scalars, but v and T.
var verbs = map[reflect.Kind]string{
	reflect.Bool: "t", reflect.String: "sqxX", reflect.Float64: "beEfFgGxX",
	reflect.Int: "bcdoOqxXU", reflect.Int64: "bcdoOqxXU", reflect.Uint8: "bcdoOqxXU", reflect.Uint64: "bcdoOqxXU",
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
