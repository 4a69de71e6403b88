// Package template renders Go templates over secret values in a sandbox.
//
// The language is that of text/template with the functions of sprig, as users of the External
// Secrets Operator know them (its engine v2). A rendering reads no file, no environment and no
// network, its work is bounded by counts of steps and bytes, and no error text holds a value.
//
// A template has at most 256 KiB and 10,000 actions, nested at most 200 deep, and declares at most
// 1,000 variables. It writes at most 1 MiB. Templates call each other at most 100 deep. A value that
// a function reads or returns has at most 2 MiB. All templates of one Secret share a Budget.
//
// The functions differ from sprig's as follows:
//
//   - env, expandenv and getHostByName do not exist, nor does the builtin call, because no value
//     in a template is a function.
//   - Of methods, those of times, durations and versions exist that compute, as now.Year does.
//   - dateInZone, date_in_zone and htmlDateInZone know the zones UTC and Local only: every other
//     zone would be read from a file.
//   - genPrivateKey makes no DSA keys: their parameters take seconds to minutes.
//   - Private keys given to genCAWithKey, genSelfSignedCertWithKey, genSignedCertWithKey,
//     genSignedCert and buildCustomCert are at most 9 KiB long, versions given to semver and
//     semverCompare 256 bytes, cut sets of trimAll and trimall 1 KiB. The decimal functions addf,
//     subf, mulf, divf and add1f take at most 64 numbers.
//   - fail does not show its message.
//   - index fails for a key that the data does not hold, unless its value is only looked at: in conditions, and
//     by default, coalesce, empty, and, or and not.
//   - b64dec, b32dec, bcrypt, htpasswd, derivePassword and genPrivateKey fail where sprig returns
//     the text of an error, which would become the secret value.
//   - Regular expressions have at most 4 KiB and compile to at most 5,000 instructions; what is
//     larger is an error, also for regexMatch.
//   - The arguments of until, untilStep and seq stay within ±2^40, and their results, like all
//     lists and dicts that a function makes, have at most 100,000 elements.
//   - A value that holds itself, or is nested more than 100 deep, can be neither printed nor given
//     to a function that reads all of it.
//   - toYaml, fromYaml and hexdec are added. fromYaml reads any document, not only a mapping, and
//     fails where the External Secrets Operator returns the error's text under the key "Error".
package template

import (
	"fmt"
	"strings"
	"sync"
	"text/template/parse"
	"time"
)

const (
	// maxText is the longest template, in bytes. Parsing takes some hundred times as much memory.
	maxText = 256 << 10
	// maxActions is how many actions a template has at most.
	maxActions = 10_000
	// maxOutput is the most that one template may write, in bytes: the size of a Secret.
	maxOutput = 1 << 20
	// maxCalls is how deep templates may call each other.
	maxCalls = 100
)

// A Function can be called by templates.
type Function struct {
	// Call is a Go function with one result, or with two of which the second is an error. An error
	// is shown to users only if it has a method Safe() string, and then by what that returns.
	Call any
	// Steps is what one call costs, in steps of about a microsecond; the size of the arguments
	// is charged on top of it.
	Steps int
}

// An Engine renders templates. It is safe for concurrent use.
type Engine struct {
	functions map[string]*function
	// known holds the names that the parser accepts.
	known    map[string]any
	prepared shelf
}

// shared holds what does not depend on the added functions.
var shared = sync.OnceValue(func() map[string]*function {
	// The first use of the local zone reads it from a file, which no rendering may do.
	_, _ = time.Now().Zone()
	return builtin()
})

// New returns an Engine with the functions that each template has and those added. It fails if an
// added function has a name that is taken or not an identifier, or results of the wrong types.
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

// Execute renders text over data, whose values the template reads as .key. A key that data does
// not hold is an error. The name is what users know the template by, for example
// spec.target.template.data[config.yaml]. The budget is shared by all templates of one Secret.
// Every error is an *Error and holds no value.
func (e *Engine) Execute(name, text string, data map[string]string, b *Budget) ([]byte, error) {
	out, err := e.execute(text, data, b)
	if err != nil {
		err.Template = name
		return nil, err
	}
	return out, nil
}

func (e *Engine) execute(text string, data map[string]string, b *Budget) (out []byte, failed *Error) {
	// A panic here is a defect, or one in text/template; it must not show what it met.
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
	*p.run = run{} // Nothing of what it saw stays.
	e.prepared.put(text, p)
	if err != nil {
		return nil, p.rw.explain(err)
	}
	return out, nil
}

// prepare returns a template that is ready to be executed by one caller.
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
