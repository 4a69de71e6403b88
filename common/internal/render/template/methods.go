package template

import (
	"fmt"
	"reflect"
	"slices"
	"text/template/parse"
	"time"

	"github.com/Masterminds/semver/v3"
)

// methods are the methods that templates can call, by name: those of times, durations and versions that only compute.
// Each takes its value first. The rewriter replaces method calls by these functions. If text/template called methods
// by name, the linker would have to keep all methods of all types, about a quarter of a provider's binary.
var methods = map[string][]any{
	"Format": {time.Time.Format}, "UTC": {time.Time.UTC}, "Local": {time.Time.Local},
	"Year": {time.Time.Year}, "Month": {time.Time.Month}, "Day": {time.Time.Day}, "YearDay": {time.Time.YearDay},
	"Weekday": {time.Time.Weekday}, "Hour": {time.Time.Hour}, "Minute": {time.Time.Minute}, "Second": {time.Time.Second},
	"Nanosecond": {time.Time.Nanosecond},
	"Unix":       {time.Time.Unix}, "UnixMilli": {time.Time.UnixMilli}, "UnixMicro": {time.Time.UnixMicro}, "UnixNano": {time.Time.UnixNano},
	"Add": {time.Time.Add}, "AddDate": {time.Time.AddDate}, "Sub": {time.Time.Sub},
	"After": {time.Time.After}, "Before": {time.Time.Before}, "IsZero": {time.Time.IsZero},
	"Round": {time.Time.Round, time.Duration.Round}, "Truncate": {time.Time.Truncate, time.Duration.Truncate},

	"Abs": {time.Duration.Abs}, "Hours": {time.Duration.Hours}, "Minutes": {time.Duration.Minutes}, "Seconds": {time.Duration.Seconds},
	"Milliseconds": {time.Duration.Milliseconds}, "Microseconds": {time.Duration.Microseconds}, "Nanoseconds": {time.Duration.Nanoseconds},

	"Major": {(*semver.Version).Major}, "Minor": {(*semver.Version).Minor}, "Patch": {(*semver.Version).Patch},
	"Prerelease": {(*semver.Version).Prerelease}, "Metadata": {(*semver.Version).Metadata}, "Original": {(*semver.Version).Original},
	"LessThan": {(*semver.Version).LessThan}, "LessThanEqual": {(*semver.Version).LessThanEqual},
	"GreaterThan": {(*semver.Version).GreaterThan}, "GreaterThanEqual": {(*semver.Version).GreaterThanEqual},
	"IncMajor": {incremented(semver.Version.IncMajor)}, "IncMinor": {incremented(semver.Version.IncMinor)}, "IncPatch": {incremented(semver.Version.IncPatch)},

	"Compare": {time.Time.Compare, (*semver.Version).Compare}, "Equal": {time.Time.Equal, (*semver.Version).Equal},
	"String": {time.Time.String, time.Duration.String, time.Month.String, time.Weekday.String, (*semver.Version).String},
}

// incremented returns a method whose result has methods as well.
func incremented(inc func(semver.Version) semver.Version) func(*semver.Version) *semver.Version {
	return func(v *semver.Version) *semver.Version {
		next := inc(*v)
		return &next
	}
}

// method calls a method of a value. If the value has no such method, it returns the field of that name, because it
// can be a key of a dict.
func (r *run) method(v any, name string, args ...any) (any, error) {
	for _, m := range methods[name] {
		if f := reflect.ValueOf(m); f.Type().In(0) == reflect.TypeOf(v) {
			return r.callMethod(f, v, name, args)
		}
	}
	if v == nil {
		return nil, &failure{"a value is missing"}
	}
	dict := reflect.ValueOf(v)
	if dict.Kind() != reflect.Map || dict.Type().Key().Kind() != reflect.String {
		return nil, &failure{fmt.Sprintf("a value has no field or method %q", name)}
	}
	field := dict.MapIndex(reflect.ValueOf(name))
	switch {
	case !field.IsValid():
		return nil, &failure{fmt.Sprintf("there is no key %q", name)}
	case len(args) > 0:
		return nil, &failure{"a value that is not a function has arguments"}
	}
	return field.Interface(), nil
}

// callMethod charges for the arguments and calls the method. A result, such as the text of a date, is at most four
// times as large as the arguments.
func (r *run) callMethod(f reflect.Value, v any, name string, args []any) (any, error) {
	if want := f.Type().NumIn() - 1; len(args) != want {
		return nil, &failure{fmt.Sprintf("method %q needs %d arguments, not %d", name, want, len(args))}
	}
	in := []reflect.Value{reflect.ValueOf(v)}
	for i, a := range args {
		given, want := reflect.ValueOf(a), f.Type().In(i+1)
		size, err := sizeOf(given)
		if err != nil {
			return nil, err
		}
		if err := r.budget.spend(size/64, 4*size); err != nil {
			return nil, err
		}
		if given.IsValid() && given.CanInt() && want.Kind() == reflect.Int64 {
			given = given.Convert(want) // A number is converted to a duration.
		}
		if !given.IsValid() || !given.Type().AssignableTo(want) {
			return nil, &failure{fmt.Sprintf("an argument of method %q has the wrong type", name)}
		}
		in = append(in, given)
	}
	return f.Call(in)[0].Interface(), nil
}

// bind replaces method calls by calls of the hidden function: now.UTC.Format becomes (_method (_method now "UTC")
// "Format").
func (rw *rewriter) bind(n parse.Node) parse.Node {
	of, names := fieldsOf(n)
	if !slices.ContainsFunc(names, func(name string) bool { return methods[name] != nil }) {
		return n
	}
	for _, name := range names {
		if methods[name] == nil {
			of = &parse.ChainNode{NodeType: parse.NodeChain, Pos: n.Position(), Node: of, Field: []string{name}}
			continue
		}
		call := rw.call(hiddenMethod, n.Position())
		call.Args = append(call.Args, of, &parse.StringNode{NodeType: parse.NodeString, Pos: n.Position(), Text: name})
		of = argument(call)
	}
	return of
}

// fieldsOf returns the value at which a chain of fields starts, and the names of the fields.
func fieldsOf(n parse.Node) (parse.Node, []string) {
	switch n := n.(type) {
	case *parse.FieldNode:
		return &parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, n.Ident
	case *parse.ChainNode:
		return n.Node, n.Field
	case *parse.VariableNode:
		return &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}, n.Ident[1:]
	}
	return n, nil
}
