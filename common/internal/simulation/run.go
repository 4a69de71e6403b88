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

// A Run is one order of what happens in a small world. Build fills it.
type Run struct {
	Server *APIServer
	// Store is the provider.
	Store *Store
	// Check is asked after each step, and Final when nothing happens any more. Digest is a hash of what they remember.
	Check, Final func() error
	Digest       func() string
	// Crashes is how many operators may crash.
	Crashes int

	mu        sync.Mutex
	operators []*Operator
	builders  []func(*Operator)
	scripts   []*script
	rest      rest
	trace     []string
	last      string
	started   time.Time
}

// rest is what came of the times when nothing but time could pass.
type rest struct {
	// quiet is a hash of what was stored the last time.
	quiet uint64
	// passed is how often time had to pass.
	passed int
}

// script is what somebody does, one step after the other.
type script struct {
	name  string
	steps []Step
}

// A Step is something that somebody does.
type Step struct {
	Label string
	// When says whether it can be done yet; nil for always.
	When func() bool
	Do   func() error
}

type choice struct {
	label string
	// thread is whose request it is.
	thread string
	rank   rank
	do     func()
}

// A rank says what happens first where nothing is out of the ordinary: who has begun goes on, caches follow at once, and
// users are slow.
type rank int

const (
	goesOn rank = iota
	sees
	goesOnAnew
	asks
	begins
	collects
	acts
	waits
	crashes
)

// Operator adds an operator. build gives it its Reconcile, and what its cache holds; again after a crash.
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

// Script adds what somebody does beside the operators.
func (r *Run) Script(name string, steps ...Step) {
	r.scripts = append(r.scripts, &script{name, steps})
}

// choices are what can happen next; none if nothing will.
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
					panic(fmt.Sprintf("the script cannot do what it shall: %v", err))
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

// crashes are the operators that may crash now.
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

// prefer has who did something last go on.
func (r *Run) prefer(all []choice) {
	for i := range all {
		switch c := &all[i]; {
		case c.thread == "" || c.thread != r.last:
		case c.rank == asks:
			c.rank = goesOn
		case c.rank == begins:
			c.rank = goesOnAnew
		}
	}
}

// retries is how often time passes in a run: what fails for good is tried again and again.
const retries = 6

// passTime lets all that waits for a time go on, unless that has led to nothing before.
func (r *Run) passTime() []choice {
	stored := r.stored()
	var longest time.Duration
	for _, o := range r.operators {
		for _, wait := range o.later {
			longest = max(longest, wait)
		}
	}
	if longest == 0 || r.rest.quiet == stored || r.rest.passed == retries {
		return nil
	}
	return []choice{{label: fmt.Sprintf("%s pass", longest), do: func() {
		r.rest.quiet = stored
		r.rest.passed++
		time.Sleep(longest)
		for _, o := range r.operators {
			for _, key := range sorted(o.later) {
				o.Enqueue(key)
			}
		}
	}}}
}

// stored is a hash of what the API server and the provider hold.
func (r *Run) stored() (sum uint64) {
	for key, d := range r.Server.digests {
		sum += join(key.String(), fmt.Sprint(d))
	}
	return sum + r.Store.digest()
}

// state is a hash of all that bears on what happens next.
func (r *Run) state() uint64 {
	parts := []string{fmt.Sprint(r.stored(), r.rest.quiet, r.rest.passed, r.Crashes, time.Since(r.started)), r.last}
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

// take does a step.
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

// end stops what still runs.
func (r *Run) end() {
	for _, o := range r.operators {
		o.stop()
	}
	r.Store.close()
}

var errEndless = errors.New("it does not come to rest")
