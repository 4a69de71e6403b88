package template

import (
	"fmt"
	"reflect"
	"strings"
)

// The checks in this file are for functions whose result, work or memory can be out of proportion to their arguments.
// Each check knows the types of its arguments from its function.

const (
	// maxNumber limits the arguments of functions that count, so that their arithmetic cannot overflow.
	maxNumber = 1 << 40
	// maxCutSet limits the set of characters to trim: each character of the text is compared with all of them.
	maxCutSet = 1 << 10
	// maxVersion limits a semantic version or constraint.
	maxVersion = 256
	// maxKey limits a private key for certificates, in bytes of PEM or base64. RSA keys of 8192 bits fit; the work
	// grows with the third power of their length.
	maxKey = 9 << 10
	// maxOperands limits the numbers of a decimal function: each of them can add 300 digits.
	maxOperands = 64
)

// within returns an error if a result of a times b bytes is too large.
func within(a, b int) error {
	if a > maxValue || b > maxValue || a*b > maxValue {
		return tooLarge()
	}
	return nil
}

func checkRepeat(_ *run, args []reflect.Value) error {
	count := args[0].Int()
	if count < 0 {
		return &failure{"the count is negative"}
	}
	return within(int(count), max(args[1].Len(), 1))
}

func checkIndent(_ *run, args []reflect.Value) error {
	spaces := args[0].Int()
	if spaces < 0 {
		return &failure{"the number of spaces is negative"}
	}
	return within(int(spaces), strings.Count(args[1].String(), "\n")+1)
}

func checkReplace(_ *run, args []reflect.Value) error {
	// An empty old text matches before each character and at the end.
	return within(strings.Count(args[2].String(), args[0].String()), args[1].Len())
}

func checkJoin(_ *run, args []reflect.Value) error {
	return within(args[0].Len(), max(lengthOf(args[1])/16, 1))
}

func checkSplit(_ *run, args []reflect.Value) error {
	if strings.Count(args[len(args)-1].String(), args[0].String()) >= maxElements {
		return tooMany()
	}
	return nil
}

func checkWrap(_ *run, args []reflect.Value) error {
	return wrapped(args[0].Int(), 1, args[1].Len())
}

func checkWrapWith(_ *run, args []reflect.Value) error {
	return wrapped(args[0].Int(), args[1].Len(), args[2].Len())
}

func wrapped(width int64, separator, length int) error {
	return within(length/int(min(max(width, 1), maxValue))+1, separator+1)
}

func checkCutSet(_ *run, args []reflect.Value) error {
	if args[0].Len() > maxCutSet {
		return &failure{fmt.Sprintf("the characters to trim are more than %d bytes", maxCutSet)}
	}
	return nil
}

// checkText refuses bytes that JSON and YAML cannot hold. Null is a value of both.
func checkText(_ *run, args []reflect.Value) error {
	m := meter{left: maxValue, text: true}
	_, err := m.size(args[0])
	return err
}

// checkHTML refuses the one character for which html returns another one.
func checkHTML(_ *run, args []reflect.Value) error {
	for i := range args[0].Len() {
		if s, ok := args[0].Index(i).Interface().(string); ok && strings.Contains(s, "\x00") {
			return &failure{"a value has a character that HTML cannot hold"}
		}
	}
	return nil
}

func abs(n int64) int {
	if n < 0 {
		n = -n
	}
	return int(min(max(n, 0), maxNumber))
}

func checkVersion(_ *run, args []reflect.Value) error {
	for _, a := range args {
		if a.Len() > maxVersion {
			return &failure{fmt.Sprintf("a version is longer than %d bytes", maxVersion)}
		}
	}
	return nil
}

func checkDecimal(r *run, args []reflect.Value) error {
	n := len(args)
	if last := args[n-1]; last.Kind() == reflect.Slice {
		n += last.Len()
	}
	if n > maxOperands {
		return &failure{fmt.Sprintf("there are more than %d numbers", maxOperands)}
	}
	return r.budget.spend(n*n/2, 0)
}

func checkUntil(r *run, args []reflect.Value) error {
	return counted(r, 0, args[0].Int(), 1)
}

func checkUntilStep(r *run, args []reflect.Value) error {
	return counted(r, args[0].Int(), args[1].Int(), args[2].Int())
}

func checkSeq(r *run, args []reflect.Value) error {
	n := make([]int64, min(args[0].Len(), 4))
	for i := range n {
		n[i] = args[0].Index(i).Int()
	}
	switch len(n) {
	case 1:
		return counted(r, 1, n[0], 1)
	case 2:
		return counted(r, n[0], n[1], 1)
	case 3:
		return counted(r, n[0], n[2], n[1])
	}
	return nil
}

// counted charges for a list of numbers, ascending or descending.
func counted(r *run, from, to, step int64) error {
	for _, n := range []int64{from, to, step} {
		if n > maxNumber || n < -maxNumber {
			return &failure{"a number is larger than 2^40"}
		}
	}
	count := abs(to-from) / max(abs(step), 1)
	if count > maxElements {
		return tooMany()
	}
	return r.budget.spend(count/8, 0)
}

// checkRandom charges for random characters; each costs price 16ths of a step.
func checkRandom(price int) func(*run, []reflect.Value) error {
	return func(r *run, args []reflect.Value) error {
		count := args[0].Int()
		if count < 0 {
			return &failure{"the length is negative"}
		}
		if count > maxValue {
			return tooLarge()
		}
		return r.budget.spend(int(count)*price/4, int(count)*4)
	}
}

func checkRandomBytes(r *run, args []reflect.Value) error {
	n := args[0].Int()
	if n < 0 || n > maxValue/2 {
		return &failure{fmt.Sprintf("the length must be from 0 to %d", maxValue/2)}
	}
	return r.budget.spend(int(n)/32, 0)
}

// checkZone allows the zones that need no file. index is that of the zone's argument.
func checkZone(index int) func(*run, []reflect.Value) error {
	return func(_ *run, args []reflect.Value) error {
		switch args[index].String() {
		case "", "UTC", "Local":
			return nil
		}
		return &failure{"the zone must be UTC or Local"}
	}
}

// checkTogether is for functions whose result has the elements of all their lists or dicts.
func checkTogether(_ *run, args []reflect.Value) error {
	n := 0
	for i := range args[0].Len() {
		if n += lengthOf(args[0].Index(i)) / 16; n > maxElements {
			return tooMany()
		}
	}
	return nil
}

// checkDict charges for the keys, which are converted to text.
func checkDict(r *run, args []reflect.Value) error {
	for i := 0; i < args[0].Len(); i += 2 {
		n, err := sizeOf(args[0].Index(i))
		if err != nil {
			return err
		}
		if err := r.budget.spend(n/64, 0); err != nil {
			return err
		}
	}
	return nil
}

// checkSlice charges for all indices, because an error repeats an index that is not a number.
func checkSlice(r *run, args []reflect.Value) error {
	n, err := sizeOf(args[1])
	if err != nil {
		return err
	}
	return r.budget.spend(n/32, 0)
}

func checkChunk(r *run, args []reflect.Value) error {
	if args[0].Int() < 1 {
		return &failure{"the size of a chunk must be at least 1"}
	}
	return r.budget.spend(0, 4*lengthOf(args[1]))
}

// checkUnique charges for comparing each element with all others.
func checkUnique(r *run, args []reflect.Value) error {
	size, err := sizeOf(args[0])
	if err != nil {
		return err
	}
	return r.budget.spend(times(lengthOf(args[0])/16, size)/64, 0)
}

// checkWithout charges for comparing each element with all elements to leave out.
func checkWithout(r *run, args []reflect.Value) error {
	size, err := sizeOf(args[0])
	if err != nil {
		return err
	}
	return r.budget.spend(times(args[1].Len(), size)/64, 0)
}

// times multiplies two sizes, each at most maxValue.
func times(a, b int) int { return min(a, maxValue) * min(b, maxValue) }

// checkCopies charges for values that are copied completely.
func checkCopies(r *run, args []reflect.Value) error {
	size := 0
	for _, a := range args {
		n, err := sizeOf(a)
		if err != nil {
			return err
		}
		size += n
	}
	return r.budget.spend(0, 8*size)
}

// checkJSON charges for the parsed document.
func checkJSON(r *run, args []reflect.Value) error {
	return document(r, args[0].String(), "{[:,")
}

// document charges for the elements of a document, counted by their separators. It also counts separators in strings;
// therefore its limit is well above that of a list.
func document(r *run, text, separators string) error {
	n := 0
	for i := range len(text) {
		if strings.IndexByte(separators, text[i]) >= 0 {
			n++
		}
	}
	if n > 2*maxElements {
		return &failure{fmt.Sprintf("the document has more than %d elements", 2*maxElements)}
	}
	return r.budget.spend(0, 128*n)
}

func spendBytes(n int) func(*run, []reflect.Value) error {
	return func(r *run, _ []reflect.Value) error { return r.budget.spend(0, n) }
}

// On an error, the functions below return a text, which would become the secret value. So their arguments are checked
// here.

// checkPassword refuses passwords and users that bcrypt and htpasswd cannot process.
func checkPassword(_ *run, args []reflect.Value) error {
	if args[len(args)-1].Len() > 72 {
		return &failure{"the password is longer than 72 bytes"}
	}
	if len(args) > 1 && strings.Contains(args[0].String(), ":") {
		return &failure{"the user name has a colon"}
	}
	return nil
}

// checkDerivation refuses unknown kinds of passwords. The derivation needs 32 MiB for a moment.
func checkDerivation(r *run, args []reflect.Value) error {
	switch args[1].String() {
	case "maximum", "long", "medium", "short", "basic", "pin":
		return r.budget.spend(0, 8<<20)
	}
	return &failure{"the kind of password must be maximum, long, medium, short, basic or pin"}
}

// checkPrivateKey charges by the kind of key.
func checkPrivateKey(r *run, args []reflect.Value) error {
	switch args[0].String() {
	case "", "rsa":
		return r.budget.spend(450_000, 0)
	case "dsa":
		return &failure{"DSA keys are not supported; use rsa, ecdsa or ed25519"}
	case "ecdsa", "ed25519":
		return nil
	}
	return &failure{"the kind of key must be rsa, ecdsa or ed25519"}
}

// checkKeys charges for the private keys in the arguments, starting at index from. They are PEM, or a certificate
// that genCA returned.
func checkKeys(from int) func(*run, []reflect.Value) error {
	return func(r *run, args []reflect.Value) error {
		for _, a := range args[from:] {
			if a.Kind() == reflect.Struct {
				a = a.FieldByName("Key")
			}
			if a.Len() > maxKey {
				return &failure{fmt.Sprintf("a private key is longer than %d KiB", maxKey>>10)}
			}
			// A key of 4096 bits has 3 KiB and costs 11,000 steps.
			if err := r.budget.spend(400*a.Len()/1024*a.Len()/1024*a.Len()/1024, 0); err != nil {
				return err
			}
		}
		return nil
	}
}
