package template

import (
	"bytes"
	"fmt"
	"reflect"

	texttemplate "github.com/DataDog/datadog-agent/pkg/template/text"
)

// A run is one rendering of one template.
type run struct {
	budget *Budget
	calls  int
	out    bytes.Buffer
}

// template builds the template for text/template, with only the functions that it uses: copying the full list would
// take longer than most renderings.
func (r *run) template(rw *rewriter) (*texttemplate.Template, error) {
	functions := make(texttemplate.FuncMap, len(rw.used)+len(rw.hide))
	for name := range rw.hide {
		functions[name] = r.hidden(name)
	}
	for name, f := range rw.used {
		functions[name] = f.bind(r)
	}
	t := texttemplate.New("").Option("missingkey=error")
	if len(functions) > 0 {
		t.Funcs(functions)
	}
	for name, tree := range rw.trees {
		if _, err := t.AddParseTree(name, tree); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Write implements io.Writer for the output of the template.
func (r *run) Write(p []byte) (int, error) {
	if r.out.Len()+len(p) > maxOutput {
		return 0, &failure{fmt.Sprintf("the output is larger than %d KiB", maxOutput>>10)}
	}
	if err := r.budget.spend(len(p)/256, len(p)); err != nil {
		return 0, err
	}
	return r.out.Write(p)
}

// The names of the hidden functions that the rewriter adds to a template. Users cannot call them, because the parser
// does not know them.
const (
	hiddenTick    = "_tick"
	hiddenEnter   = "_enter"
	hiddenExit    = "_leave"
	hiddenMeasure = "_measure"
	hiddenRange   = "_range"
	hiddenMethod  = "_method"
	hiddenNeed    = "_need"
	hiddenTest    = "_test"
	hiddenTested  = "_tested"
	hiddenLength  = "_length"
	hiddenIndex   = "_index"
	hiddenGet     = "_get"
)

// hidden returns a hidden function by its name.
func (r *run) hidden(name string) any {
	switch name {
	case hiddenTick:
		return r.tick
	case hiddenEnter:
		return r.enter
	case hiddenExit:
		return r.exit
	case hiddenRange:
		return r.rangeOver
	case hiddenMethod:
		return r.method
	case hiddenNeed:
		return r.need
	case hiddenTest:
		return test
	case hiddenTested:
		return tested
	case hiddenLength:
		return length
	case hiddenIndex:
		return askIndex
	case hiddenGet:
		return askGet
	}
	return r.measure
}

// tick counts one round of a range. steps is the cost of its body.
func (r *run) tick(steps int) (string, error) { return "", r.budget.spend(steps, 0) }

// enter counts one execution of a template. steps is the cost of its body.
func (r *run) enter(steps int) (string, error) {
	r.calls++
	if r.calls > maxCalls {
		return "", &failure{fmt.Sprintf("templates call each other more than %d deep", maxCalls)}
	}
	return "", r.budget.spend(steps, 0)
}

func (r *run) exit() string {
	r.calls--
	return ""
}

// rangeOver is the last command of each range's pipeline. A range first sorts the keys of a dict.
func (r *run) rangeOver(v any) (any, error) {
	if d := reflect.ValueOf(v); d.Kind() == reflect.Map {
		return v, r.budget.spend(d.Len(), 0)
	}
	return v, nil
}

// measure is the last command of every printed pipeline. By changing a dict that is part of other values, a template
// can build a value that is larger than any function returns, or that contains itself. name is the name of the value in
// the template; empty if it has none.
func (r *run) measure(name string, v any) (any, error) {
	if v == nil {
		return nil, absent(name)
	}
	m := meter{left: maxValue, present: true}
	n, err := m.size(reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	return v, r.budget.spend(n/128, 0)
}
