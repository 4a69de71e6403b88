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

// template builds what text/template executes, with only the functions that it uses: copying the
// full list would cost more than most renderings.
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

// Write takes the output of the template.
func (r *run) Write(p []byte) (int, error) {
	if r.out.Len()+len(p) > maxOutput {
		return 0, &failure{fmt.Sprintf("the output is larger than %d KiB", maxOutput>>10)}
	}
	if err := r.budget.spend(len(p)/256, len(p)); err != nil {
		return 0, err
	}
	return r.out.Write(p)
}

// The names of the functions that the rewriter puts into a template. Users cannot call them,
// because the parser does not know them.
const (
	hiddenTick    = "_tick"
	hiddenEnter   = "_enter"
	hiddenLeave   = "_leave"
	hiddenMeasure = "_measure"
	hiddenRange   = "_range"
	hiddenMethod  = "_method"
	hiddenPass    = "_pass"
	hiddenKey     = "_key"
)

// hidden returns the hidden function of that name.
func (r *run) hidden(name string) any {
	switch name {
	case hiddenTick:
		return r.tick
	case hiddenEnter:
		return r.enter
	case hiddenLeave:
		return r.leave
	case hiddenRange:
		return r.rangeOver
	case hiddenMethod:
		return r.method
	case hiddenPass:
		return r.pass
	case hiddenKey:
		return r.key
	}
	return r.measure
}

// tick begins one round of a range, whose body takes so many steps.
func (r *run) tick(steps int) (string, error) { return "", r.budget.spend(steps, 0) }

// enter begins one execution of a template, whose body takes so many steps.
func (r *run) enter(steps int) (string, error) {
	r.calls++
	if r.calls > maxCalls {
		return "", &failure{fmt.Sprintf("templates call each other more than %d deep", maxCalls)}
	}
	return "", r.budget.spend(steps, 0)
}

func (r *run) leave() string {
	r.calls--
	return ""
}

// rangeOver is the end of the pipeline of each range. A range sorts the keys of a dict before it
// begins.
func (r *run) rangeOver(v any) (any, error) {
	if d := reflect.ValueOf(v); d.Kind() == reflect.Map {
		return v, r.budget.spend(d.Len(), 0)
	}
	return v, nil
}

// measure is the end of every pipeline whose value is printed, and around the arguments of
// comparisons, whose errors print them. By changing a dict that other values hold, a
// template makes values that are larger than any function would return, or hold themselves.
func (r *run) measure(v any) (any, error) {
	n, err := sizeOf(reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	return v, r.budget.spend(n/128, 0)
}

// pass charges for an argument of index.
func (r *run) pass(v any) (any, error) {
	return v, r.budget.spend(1+lengthOf(reflect.ValueOf(v))/64, 0)
}

// key is around the first key that index is given, and charges for it. index itself yields nothing for a key that
// the data does not hold, which would become the secret value.
func (r *run) key(data, v any) (any, error) {
	if values, ok := data.(map[string]string); ok {
		if key, ok := v.(string); ok {
			if _, ok := values[key]; !ok {
				return nil, &failure{`function "index": there is no such key`}
			}
		}
	}
	return r.pass(v)
}
