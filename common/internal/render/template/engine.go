// Package template renders Go templates over secret values in a sandbox.
//
// The language is that of text/template with the functions of sprig, as in External Secrets Operator (its engine v2).
// A rendering reads no file, no environment variable and no network. Its work is limited by counts of steps and
// bytes, and no error contains a value.
//
// A template has at most 256 KiB and 10,000 actions, at most 200 nested actions, and at most 1,000 variables. Its
// output has at most 1 MiB. Calls between templates are at most 100 deep. A value that a function reads or returns
// has at most 2 MiB. All templates of one Secret share a Budget.
//
// The functions differ from sprig's as follows:
//
//   - env, expandenv and getHostByName do not exist, nor does the builtin call, because no value
//     in a template is a function.
//   - Only those methods of times, durations and versions exist that compute, such as now.Year.
//   - dateInZone, date_in_zone and htmlDateInZone support only the zones UTC and Local, because
//     other zones are read from a file.
//   - genPrivateKey supports no DSA keys: their parameters take seconds to minutes.
//   - Private keys given to genCAWithKey, genSelfSignedCertWithKey, genSignedCertWithKey,
//     genSignedCert and buildCustomCert are at most 9 KiB long, versions given to semver and
//     semverCompare 256 bytes, cut sets of trimAll and trimall 1 KiB. The decimal functions addf,
//     subf, mulf, divf and add1f take at most 64 numbers.
//   - fail does not show its message.
//   - A value is never changed silently. Numbers of documents keep their digits; null and missing values
//     are errors when they are printed or given to a function on text or numbers; bytes that are not text
//     are errors for functions on text; see class.
//   - index and get fail for a key that does not exist, unless the value is only tested: in conditions,
//     and by default, coalesce, empty, and, or and not.
//   - fromJson and fromYaml fail for documents that can be read in more than one way.
//   - printf fails for a verb that does not fit. atoi, int and other functions that compute fail for text
//     that is not a number, where sprig computes with 0.
//   - b64dec, b32dec, bcrypt, htpasswd, derivePassword and genPrivateKey fail where sprig returns
//     the text of an error, which would become the secret value.
//   - Regular expressions have at most 4 KiB and compile to at most 5,000 instructions. A larger one
//     is an error, also for regexMatch.
//   - The arguments of until, untilStep and seq are within ±2^40. Their results, and all lists and
//     dicts that a function makes, have at most 100,000 elements.
//   - A value that contains itself, or is nested more than 100 deep, can be neither printed nor passed
//     to a function that reads all of it.
//   - toYaml, fromYaml and hexdec are added. fromYaml reads any document, not only a mapping. It
//     fails where External Secrets Operator returns the text of the error under the key "Error". Its keys
//     are as they are written.
package template

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template/parse"
	"time"
)

const (
	// maxText limits a template, in bytes. Parsing takes about a hundred times as much memory.
	maxText = 256 << 10
	// maxActions limits the actions of a template.
	maxActions = 10_000
	// maxOutput limits the output of one template, in bytes. It is the size of a Secret.
	maxOutput = 1 << 20
	// maxCalls limits the depth of calls between templates.
	maxCalls = 100
)

// A Function is one that templates can call.
type Function struct {
	// Call is a Go function with one result, or with two of which the second is an error. An error is shown to users
	// only if it has a method Safe() string, and then only the result of that method.
	Call any
	// Steps is the cost of one call, in steps of about a microsecond. The size of the arguments is charged in
	// addition.
	Steps int
}

// An Engine renders templates. It is safe for concurrent use.
type Engine struct {
	functions map[string]*function
	// known holds the names that the parser accepts.
	known    map[string]any
	prepared shelf
}

// shared are the functions of all engines.
var shared = sync.OnceValue(func() map[string]*function {
	// The first use of the local time zone reads it from a file, which no rendering is allowed to do.
	_, _ = time.Now().Zone()
	return builtin()
})

// New returns an Engine with the functions of every template and the added ones. It fails if an added function has a
// name that is in use or not an identifier, or results of the wrong types.
func New(added map[string]Function) (*Engine, error) {
	e := &Engine{functions: map[string]*function{}, known: map[string]any{}}
	for name, f := range shared() {
		e.functions[name] = f
		e.known[name] = f
	}
	for _, name := range native {
		e.known[name] = name
	}
	for name, a := range added {
		if e.known[name] != nil {
			return nil, fmt.Errorf("cannot add the function %q: there is one of that name", name)
		}
		f, err := newFunction(name, a.Call, rule{steps: a.Steps, per: 16})
		if err != nil {
			return nil, err
		}
		e.functions[name] = f
		e.known[name] = f
	}
	return e, nil
}

// Execute renders text over data, whose values are .key in the template. A key that is not in data is an error. name
// is the template's name for users, for example spec.target.template.data[config.yaml]. All templates of one Secret
// share the budget. Every error is an *Error and contains no value.
func (e *Engine) Execute(name, text string, data map[string]string, b *Budget) ([]byte, error) {
	out, err := e.execute(text, data, b)
	if err != nil {
		err.Template = name
		return nil, err
	}
	return out, nil
}

func (e *Engine) execute(text string, data map[string]string, b *Budget) (out []byte, failed *Error) {
	// A panic here is a bug of this package or of text/template. Its text might contain a value.
	defer func() {
		if recover() != nil {
			out, failed = nil, &Error{Reason: "the template could not be rendered"}
		}
	}()
	if len(text) > maxText || strings.Count(text, "{{") > maxActions {
		return nil, &Error{Reason: fmt.Sprintf("a template has at most %d KiB and %d actions", maxText>>10, maxActions)}
	}
	if err := b.spend(len(text)/4, len(text)); err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	p, failed := e.prepare(text)
	if failed != nil {
		return nil, failed
	}
	if err := b.spend(p.steps, 0); err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	p.run.budget = b
	err := p.template.Execute(p.run, data)
	out = p.run.out.Bytes()
	*p.run = run{} // It must keep no values.
	e.prepared.put(text, p)
	if err != nil {
		return nil, p.rw.explain(err)
	}
	return out, nil
}

// Check reports whether the engine accepts a text as a template: it parses, and calls only functions that there are.
func (e *Engine) Check(text string) error {
	if len(text) > maxText || strings.Count(text, "{{") > maxActions {
		return &Error{Reason: fmt.Sprintf("a template has at most %d KiB and %d actions", maxText>>10, maxActions)}
	}
	p, failed := e.prepare(text)
	if failed != nil {
		return failed
	}
	e.prepared.put(text, p)
	return nil
}

// Keys returns the keys of the data that a template reads by name, sorted; none if the engine does not accept it.
func (e *Engine) Keys(text string) []string {
	if e.Check(text) != nil {
		return nil
	}
	p, failed := e.prepare(text)
	if failed != nil {
		return nil
	}
	defer e.prepared.put(text, p)
	keys := slices.DeleteFunc(slices.Clone(p.rw.keys), func(k string) bool { return k == "" })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// prepare returns a template that one caller can execute.
func (e *Engine) prepare(text string) (*prepared, *Error) {
	if p := e.prepared.take(text); p != nil {
		return p, nil
	}
	trees, err := parse.Parse("", text, "", "", e.known)
	if err != nil {
		return nil, parseError(err)
	}
	p := &prepared{rw: newRewriter(e, text, trees), run: &run{}}
	var failed *Error
	if p.steps, failed = p.rw.rewrite(); failed != nil {
		return nil, failed
	}
	if p.template, err = p.run.template(p.rw); err != nil {
		return nil, &Error{Reason: "the template could not be prepared"}
	}
	return p, nil
}
