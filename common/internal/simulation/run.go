package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Run is one order of events in a small world, which the build function creates.
type Run struct {
	Server *APIServer
	// Store is the provider.
	Store *Store
	// Check is called after each step, and Final when nothing more can happen. Digest returns a hash of the state of
	// both.
	Check, Final func() error
	Digest       func() string
	// Crashes is the maximum number of crashes of operators.
	Crashes int

	mu        sync.Mutex
	operators []*Operator
	builders  []func(*Operator)
	scripts   []*script
	trace     []string
	last      string
	started   time.Time
	// passed is how often time had to pass, because no other step was possible.
	passed int
}

// script is a sequence of actions of a user or a tool.
type script struct {
	name  string
	steps []Step
}

// A Step is an action in a script.
type Step struct {
	Label string
	// When reports whether the action is possible yet; nil for always.
	When func() bool
	Do   func() error
}

type choice struct {
	label string
	// thread is the operator whose request it is; empty for other steps.
	thread string
	rank   rank
	do     func()
}

// A rank is the default order of choices: running work continues, caches catch up at once, and users are slow.
type rank int

const (
	goesOn rank = iota
	sees
	restarts
	asks
	begins
	collects
	acts
	waits
	crashes
)

// Operator adds an operator. build sets its Reconcile and the watches of its cache; it is called again after a crash.
func (r *Run) Operator(name string, build func(*Operator)) {
	r.operators = append(r.operators, nil)
	r.builders = append(r.builders, func(o *Operator) {
		o.Name = name
		build(o)
	})
	r.start(len(r.operators) - 1)
}

func (r *Run) start(i int) {
	o := &Operator{run: r, queue: map[types.NamespacedName]bool{}, later: map[types.NamespacedName]time.Duration{}}
	o.Context, o.cancel = context.WithCancel(context.Background())
	o.Cache = &Cache{server: r.Server, saw: o.saw, shown: map[Key]*Object{}, views: map[string]view{}, index: map[string]map[string]client.IndexerFunc{}}
	o.Live = NewClient(r.Server, o.Do)
	r.operators[i] = o
	r.builders[i](o)
	for _, kind := range o.Cache.behind() {
		o.Cache.catchUp(kind, requests{o: o})
	}
}

// Script adds actions of users or tools, which run concurrently with the operators.
func (r *Run) Script(name string, steps ...Step) {
	r.scripts = append(r.scripts, &script{name, steps})
}

// choices returns the steps that are possible next; none if the run has ended.
func (r *Run) choices() []choice {
	var all []choice
	for _, o := range r.operators {
		all = append(all, o.choices()...)
	}
	for _, s := range r.scripts {
		if len(s.steps) > 0 && (s.steps[0].When == nil || s.steps[0].When()) {
			all = append(all, choice{label: s.name + ": " + s.steps[0].Label, rank: acts, do: func() {
				do := s.steps[0].Do
				s.steps = s.steps[1:]
				if err := do(); err != nil {
					panic(fmt.Sprintf("the script cannot do its step: %v", err))
				}
			}})
		}
	}
	for _, k := range r.Server.Orphans() {
		all = append(all, choice{label: "collector: delete " + k.String(), rank: collects, do: func() { r.Server.Collect(k) }})
	}
	if !slices.ContainsFunc(all, func(c choice) bool { return c.rank < waits }) {
		return r.passTime()
	}
	all = append(all, r.crashes()...)
	r.prefer(all)
	slices.SortStableFunc(all, func(a, b choice) int { return int(a.rank - b.rank) })
	return all
}

// crashes returns the crashes that are possible now.
func (r *Run) crashes() (all []choice) {
	if r.Crashes == 0 {
		return nil
	}
	for i, o := range r.operators {
		all = append(all, choice{label: o.Name + ": crash and restart", rank: crashes, do: func() {
			r.Crashes--
			o.stop()
			synctest.Wait()
			r.start(i)
		}})
	}
	return all
}

// prefer moves the requests of the operator that acted last to the front.
func (r *Run) prefer(all []choice) {
	for i := range all {
		switch c := &all[i]; {
		case c.thread == "" || c.thread != r.last:
		case c.rank == asks:
			c.rank = goesOn
		case c.rank == begins:
			c.rank = restarts
		}
	}
}

// retries is how often time passes in a run, because permanent failures are retried without end.
const retries = 6

// passTime lets the longest requeue delay pass.
func (r *Run) passTime() []choice {
	var longest time.Duration
	for _, o := range r.operators {
		for _, wait := range o.later {
			longest = max(longest, wait)
		}
	}
	if longest == 0 || r.passed == retries {
		return nil
	}
	return []choice{{label: fmt.Sprintf("%s pass", longest), do: func() {
		r.passed++
		time.Sleep(longest)
		for _, o := range r.operators {
			for _, key := range sorted(o.later) {
				o.Enqueue(key)
			}
		}
	}}}
}

// stored returns a hash of the content of the API server and the provider.
func (r *Run) stored() (sum uint64) {
	for key, d := range r.Server.digests {
		sum += join(key.String(), fmt.Sprint(d))
	}
	return sum + r.Store.digest()
}

// state returns a hash of everything that influences the next steps.
func (r *Run) state() uint64 {
	parts := []string{fmt.Sprint(r.stored(), r.passed, r.Crashes, time.Since(r.started)), r.last}
	for _, o := range r.operators {
		parts = append(parts, fmt.Sprint(o.digest()))
	}
	for _, s := range r.scripts {
		parts = append(parts, fmt.Sprint(len(s.steps)))
	}
	if r.Digest != nil {
		parts = append(parts, r.Digest())
	}
	return join(parts...)
}

// take executes a step.
func (r *Run) take(c choice) error {
	r.trace = append(r.trace, c.label)
	if c.rank != sees {
		r.last = c.thread
	}
	c.do()
	synctest.Wait()
	if r.Check != nil {
		return r.Check()
	}
	return nil
}

// end stops all operators.
func (r *Run) end() {
	for _, o := range r.operators {
		o.stop()
	}
	r.Store.close()
}

var errEndless = errors.New("it does not come to rest")
