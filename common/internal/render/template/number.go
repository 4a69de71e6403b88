package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cast"
)

// Numbers of documents are json.Number: their text, so that each way to print one shows the digits of the document.
// Functions that compute get an int64 or a float64.

const (
	// maxDigits limits the digits of a number that is not written in base ten, and of one that a format rounds.
	maxDigits = 1_000
	// maxExponent replaces larger exponents; float64 has at most 308.
	maxExponent = 1 << 20
)

// A decimal is a number as 0.digits × 10^exponent, without leading or trailing zeros. Zero has no digits.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// parseDecimal parses a number of JSON or YAML. It reports false for infinity, for what is not a number, and for text
// that is no number.
func parseDecimal(text string) (decimal, bool) {
	text = strings.ReplaceAll(text, "_", "")
	text, negative := strings.CutPrefix(strings.TrimPrefix(text, "+"), "-")
	if len(text) > 1 && text[0] == '0' && text[1] != '.' {
		if n, ok := otherBase(text); ok {
			text = n
		}
	}
	mantissa, power, hasPower := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return decimal{}, false
	}
	exponent := 0
	if hasPower {
		if strings.Trim(strings.TrimLeft(power, "+-"), "0123456789") != "" || strings.TrimLeft(power, "+-") == "" {
			return decimal{}, false
		}
		exponent, _ = strconv.Atoi(power) // It is the nearest number for one that does not fit.
		exponent = min(max(exponent, -maxExponent), maxExponent)
	}
	exponent += len(whole)
	significant := strings.TrimLeft(digits, "0")
	exponent -= len(digits) - len(significant)
	if significant = strings.TrimRight(significant, "0"); significant == "" {
		return decimal{}, true
	}
	return decimal{negative: negative, digits: significant, exponent: exponent}, true
}

// base matches integers that are not in base ten.
var base = regexp.MustCompile(`^0([xXoObB][0-9a-fA-F]+|[0-7]+)$`)

// otherBase converts an integer of YAML that is not in base ten, such as 0x1f, 0o17, 0b1 or 017.
func otherBase(text string) (string, bool) {
	if len(text) > maxDigits || !base.MatchString(text) {
		return "", false
	}
	n, ok := new(big.Int).SetString(text, 0)
	if !ok {
		return "", false
	}
	return n.String(), true
}

// decimalOf returns a value as a decimal, and false if it is not a number. A float64 is the shortest decimal that
// stands for it, so that 0.1 of a template equals 0.1 of a document.
func decimalOf(v any) (decimal, bool) {
	switch n := reflect.ValueOf(v); {
	case !n.IsValid():
		return decimal{}, false
	case n.CanInt():
		return parseDecimal(strconv.FormatInt(n.Int(), 10))
	case n.CanUint():
		return parseDecimal(strconv.FormatUint(n.Uint(), 10))
	case n.CanFloat():
		return parseDecimal(strconv.FormatFloat(n.Float(), 'e', -1, 64))
	}
	if n, ok := v.(json.Number); ok {
		return parseDecimal(string(n))
	}
	return decimal{}, false
}

// compare returns -1, 0 or 1 if d is less than, equal to or greater than other.
func (d decimal) compare(other decimal) int {
	if d.sign() != other.sign() {
		return compareInts(d.sign(), other.sign())
	}
	if d.exponent != other.exponent && d.digits != "" {
		return d.sign() * compareInts(d.exponent, other.exponent)
	}
	return d.sign() * strings.Compare(d.digits, other.digits)
}

func compareInts(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// whole reports whether d is an integer.
func (d decimal) whole() bool { return len(d.digits) <= d.exponent || d.digits == "" }

// text returns d in base ten, so that strconv and math/big can read it.
func (d decimal) text() string {
	sign := ""
	if d.negative {
		sign = "-"
	}
	if d.digits == "" {
		return "0"
	}
	return sign + "0." + d.digits + "e" + strconv.Itoa(d.exponent)
}

// toInt64 returns the integer part of a number, as functions on integers of sprig do.
func (d decimal) toInt64() (int64, error) {
	if d.exponent <= 0 {
		return 0, nil
	}
	digits := d.digits[:min(len(d.digits), d.exponent)]
	if d.negative {
		digits = "-" + digits
	}
	if d.exponent <= 20 {
		n, err := strconv.ParseInt(digits+strings.Repeat("0", d.exponent-min(len(d.digits), d.exponent)), 10, 64)
		if err == nil {
			return n, nil
		}
	}
	return 0, &failure{"a number is too large for a function on integers"}
}

// toFloat64 returns the nearest float64.
func (d decimal) toFloat64() (float64, error) {
	f, err := strconv.ParseFloat(d.text(), 64)
	if err != nil {
		return 0, &failure{"a number is too large for a function on numbers"}
	}
	return f, nil
}

var errNumber = &failure{"an argument is not a number"}

// toInteger converts an argument of a function on integers.
func toInteger(v any) (any, error) {
	if n, ok := v.(json.Number); ok {
		d, ok := parseDecimal(string(n))
		return numberOr(ok, d.toInt64)
	}
	return numberOr(true, func() (int64, error) { return cast.ToInt64E(v) })
}

// toFloat converts an argument of a function on numbers.
func toFloat(v any) (any, error) {
	if n, ok := v.(json.Number); ok {
		d, ok := parseDecimal(string(n))
		return numberOr(ok, d.toFloat64)
	}
	return numberOr(true, func() (float64, error) { return cast.ToFloat64E(v) })
}

// numberOr returns a converted number, or an error without its value.
func numberOr[N int64 | float64](ok bool, convert func() (N, error)) (any, error) {
	if !ok {
		return nil, errNumber
	}
	n, err := convert()
	var own *failure
	switch {
	case errors.As(err, &own):
		return nil, own
	case err != nil:
		return nil, errNumber
	}
	return n, nil
}

// toTime converts an argument of a function on times: a number counts seconds.
func toTime(v any) (any, error) {
	if _, ok := v.(json.Number); ok {
		return toInteger(v)
	}
	return v, nil
}

// goNumber is the type of numbers of documents for functions that tell types, as in sprig.
func goNumber(v any) any {
	if _, ok := v.(json.Number); ok {
		return float64(0)
	}
	return v
}

// parseInteger converts text to an integer. Unlike sprig's atoi, which returns 0, it fails for other text.
func parseInteger(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errNumber
	}
	return n, nil
}

// parseOctal converts octal digits. Unlike sprig's toDecimal, which returns 0, it fails for other text.
func parseOctal(v any) (int64, error) {
	n, err := strconv.ParseInt(fmt.Sprint(v), 8, 64)
	if err != nil {
		return 0, errNumber
	}
	return n, nil
}
