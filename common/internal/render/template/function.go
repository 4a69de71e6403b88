package template

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"unicode/utf8"

	"github.com/direct-secrets/direct-secrets/common/internal/fips"
)

// A mode is how much of its arguments a function reads.
type mode int

const (
	// walks is for functions that read all of their arguments.
	walks mode = iota
	// builds is for functions that copy the elements of lists and dicts, but not the contents of these.
	builds
	// reads is for functions that return one of their arguments, a part of one, or a small value.
	reads
)

// A class is what a function does with its arguments, and so which of them it must not get: no function changes a
// value silently.
type class int

const (
	// passes is for functions that return their arguments or parts of them as they are, or read their bytes.
	passes class = iota
	// prints is for functions whose result has all bytes of their arguments. Null is an error.
	prints
	// textual is for functions on text. Null is an error, and so are bytes that are not UTF-8.
	textual
	// integers, floats and dates are for functions that compute. They get numbers as int64, as float64, or as int64
	// among other values; an argument that is not a number is an error.
	integers
	floats
	dates
)

// convert returns the conversion of the arguments of a class; nil if there is none.
func (c class) convert() func(any) (any, error) {
	switch c {
	case integers:
		return toInteger
	case floats:
		return toFloat
	case dates:
		return toTime
	case passes, prints, textual:
	}
	return nil
}

// A rule limits a function.
type rule struct {
	mode  mode
	class class
	// steps is the cost of each call.
	steps int
	// per is the number of argument bytes that cost one more step; zero means 256.
	per int
	// check refuses arguments with which the function would do more than its rule assumes. It can spend the budget.
	check func(r *run, args []reflect.Value) error
}

// A function is one that templates can call, with its rule.
type function struct {
	name string
	call reflect.Value
	// typ is the type of call for templates: without a first parameter *run.
	typ     reflect.Type
	takeRun bool
	rule    rule
}

// identifier matches the name of a function.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

func newFunction(name string, call any, r rule) (*function, error) {
	if !identifier.MatchString(name) {
		return nil, fmt.Errorf("cannot add %q: it is not an identifier", name)
	}
	v := reflect.ValueOf(call)
	if v.Kind() != reflect.Func {
		return nil, fmt.Errorf("cannot add %q: it is not a function", name)
	}
	t := v.Type()
	if n := t.NumOut(); n == 0 || n > 2 || n == 2 && t.Out(1) != reflect.TypeFor[error]() {
		return nil, fmt.Errorf("cannot add the function %q: it must have one result, or two of which the second is an error", name)
	}
	if r.per == 0 {
		r.per = 256
	}
	f := &function{name: name, call: v, typ: t, rule: r}
	if t.NumIn() > 0 && t.In(0) == reflect.TypeFor[*run]() {
		f.takeRun = true
		f.typ = withoutFirst(t)
	}
	return f, nil
}

// withoutFirst returns the type of a function without its first parameter.
func withoutFirst(t reflect.Type) reflect.Type {
	var in, out []reflect.Type
	for i := 1; i < t.NumIn(); i++ {
		in = append(in, t.In(i))
	}
	for i := range t.NumOut() {
		out = append(out, t.Out(i))
	}
	return reflect.FuncOf(in, out, t.IsVariadic())
}

// bind returns the function for the templates of one run.
func (f *function) bind(r *run) any {
	if text, ok := f.call.Interface().(func(string) string); ok && f.rule.check == nil {
		return func(s string) string { return f.text(r, text, s) }
	}
	return reflect.MakeFunc(f.typ, func(args []reflect.Value) []reflect.Value {
		return f.invoke(r, args)
	}).Interface()
}

// invoke calls the function within its rule. Like the functions of sprig it panics on an error, because some
// functions have no error result; text/template turns the panic into an error.
func (f *function) invoke(r *run, args []reflect.Value) []reflect.Value {
	defer f.shield()
	if err := f.admit(r, args); err != nil {
		panic(f.failed(err))
	}
	if f.takeRun {
		args = append([]reflect.Value{reflect.ValueOf(r)}, args...)
	}
	var out []reflect.Value
	if f.typ.IsVariadic() {
		out = f.call.CallSlice(args)
	} else {
		out = f.call.Call(args)
	}
	if len(out) == 2 && !out[1].IsNil() {
		err, _ := out[1].Interface().(error)
		var missing *noKeyError
		if errors.As(err, &missing) {
			panic(missing)
		}
		panic(f.failed(err))
	}
	if err := f.accept(r, out[0]); err != nil {
		panic(f.failed(err))
	}
	return out
}

// text is invoke for the most common type of function, without reflection.
func (f *function) text(r *run, call func(string) string, s string) string {
	defer f.shield()
	if len(s) > maxValue {
		panic(f.failed(tooLarge()))
	}
	if f.rule.class == textual && !utf8.ValidString(s) {
		panic(f.failed(notText))
	}
	if err := r.budget.spend(1+f.rule.steps+len(s)/f.rule.per, 0); err != nil {
		panic(f.failed(err))
	}
	out := call(s)
	if len(out) > maxValue {
		panic(f.failed(tooLarge()))
	}
	if err := r.budget.spend(len(out)/1024, len(out)); err != nil {
		panic(f.failed(err))
	}
	return out
}

// shield replaces a panic by one that contains no value.
func (f *function) shield() {
	switch p := recover().(type) {
	case nil:
	case *failure:
		panic(p)
	case *noKeyError:
		panic(p)
	default:
		panic(f.failed(refusalOf(p)))
	}
}

// failed returns the failure for an error of the function.
func (f *function) failed(err error) *failure {
	var own *failure
	var safe interface {
		error
		Safe() string
	}
	switch {
	case errors.As(err, &own):
		return &failure{fmt.Sprintf("function %q: %s", f.name, own.reason)}
	case errors.As(err, &safe):
		return &failure{fmt.Sprintf("function %q: %s", f.name, safe.Safe())}
	case fips.Refused(err):
		return f.failed(refusalOf(err))
	}
	return &failure{fmt.Sprintf("function %q failed", f.name)}
}

// refusalOf returns the failure for an error or a panic of a call that Go refuses in FIPS 140-3 mode; nil for others.
func refusalOf(v any) error {
	if !fips.Refused(v) {
		return nil
	}
	return &failure{fips.Refusal}
}

// admit charges for the arguments, and refuses those that the function must not get.
func (f *function) admit(r *run, args []reflect.Value) error {
	size := 0
	for _, a := range args {
		n, err := f.rule.sizeOf(a)
		if err != nil {
			return err
		}
		size += n
	}
	if err := r.budget.spend(1+f.rule.steps+size/f.rule.per, 0); err != nil {
		return err
	}
	if f.rule.check != nil {
		if err := f.rule.check(r, args); err != nil {
			return err
		}
	}
	return f.convert(args)
}

// convert replaces the arguments of a function that computes by numbers of Go.
func (f *function) convert(args []reflect.Value) error {
	convert := f.rule.class.convert()
	if convert == nil {
		return nil
	}
	for i, a := range args {
		if f.typ.IsVariadic() && i == len(args)-1 {
			if err := convertAll(convert, a); err != nil {
				return err
			}
			continue
		}
		if a.Kind() != reflect.Interface {
			continue
		}
		v, err := convert(a.Interface())
		if err != nil {
			return err
		}
		args[i] = reflect.ValueOf(&v).Elem()
	}
	return nil
}

// convertAll converts variadic arguments. Their list exists for this call only.
func convertAll(convert func(any) (any, error), list reflect.Value) error {
	all, ok := list.Interface().([]any)
	if !ok {
		return nil
	}
	for i := range all {
		v, err := convert(all[i])
		if err != nil {
			return err
		}
		all[i] = v
	}
	return nil
}

// sizeOf returns how much of an argument the function reads, in bytes.
func (r rule) sizeOf(v reflect.Value) (int, error) {
	switch {
	case r.mode == walks:
		m := meter{left: maxValue, present: r.class != passes, text: r.class == textual}
		return m.size(v)
	case v.Kind() == reflect.Interface:
		return r.sizeOf(v.Elem())
	case v.Kind() == reflect.String:
		return v.Len() / 16, nil // It can only become the key of a dict.
	}
	return lengthOf(v), nil
}

// accept charges for the result, and refuses one that is too large.
func (f *function) accept(r *run, v reflect.Value) error {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	size := lengthOf(v)
	switch v.Kind() {
	case reflect.String:
		if size > maxValue {
			return tooLarge()
		}
	case reflect.Struct:
		var err error
		if size, err = sizeOf(v); err != nil {
			return err
		}
	case reflect.Map:
		size *= 4
		fallthrough
	case reflect.Slice:
		if v.Len() > maxElements {
			return tooMany()
		}
	}
	if f.rule.mode == reads {
		return nil
	}
	return r.budget.spend(size/1024, size)
}

func tooLarge() error {
	return &failure{fmt.Sprintf("the result would be larger than %d KiB", maxValue>>10)}
}

func tooMany() error {
	return &failure{fmt.Sprintf("the result would have more than %d elements", maxElements)}
}
