package simulation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// steps is the default for Bounds.Steps.
const steps = 250

// Holds fails the test if a run of a world has a fault. build builds the world for each run.
func Holds(t *testing.T, build func(*Run), b Bounds) {
	t.Helper()
	r := Explore(t, build, b)
	t.Log(r)
	if r.Fault != nil {
		t.Error("a run breaks what must hold")
	}
}

// Breaks fails the test if no run of a world has a fault.
func Breaks(t *testing.T, build func(*Run)) {
	t.Helper()
	r := Explore(t, build, Bounds{Deviations: 3, Time: time.Minute})
	t.Log(r)
	if r.Fault == nil {
		t.Error("the fault is not found")
	}
}

// Bounds limit an exploration.
type Bounds struct {
	// Deviations is the maximum number of steps per run that are not the default choice.
	Deviations int
	// Steps is the maximum number of steps per run; more are a fault. Default 250.
	Steps int
	// Time is the maximum time of the exploration; 0 for no limit.
	Time time.Duration
}

// A Report is the result of an exploration.
type Report struct {
	// Complete is the highest number of deviations for which all orders were tried; -1 for none.
	Complete            int
	States, Runs, Depth int
	Took                time.Duration
	// Fault is the first fault, and Trace the run that led to it; nil if there was none.
	Fault error
	Trace []string
}

// String implements fmt.Stringer.
func (r Report) String() string {
	s := fmt.Sprintf("deviations %d, states %d, runs %d, depth %d, time %s", r.Complete, r.States, r.Runs, r.Depth, r.Took.Round(time.Millisecond))
	if r.Fault != nil {
		s += fmt.Sprintf("\nfault: %v\n  %s", r.Fault, strings.Join(r.Trace, "\n  "))
	}
	return s
}

// explorer holds the runs that are still to do, by their number of deviations.
type explorer struct {
	Report
	bounds  Bounds
	visited map[uint64]bool
	todo    [][][]int
}

// Explore tries the orders in which the steps of a world can happen, those with the fewest deviations from the default
// order first. It stops at the first fault, or when the bounds are reached. It does not continue from a state that it
// has seen before.
func Explore(t *testing.T, build func(*Run), b Bounds) Report {
	t.Helper()
	if b.Steps == 0 {
		b.Steps = steps
	}
	project() // must be called outside of a synctest bubble
	start := time.Now()
	e := &explorer{Report: Report{Complete: -1}, bounds: b, visited: map[uint64]bool{}, todo: make([][][]int, b.Deviations+1)}
	e.todo[0] = [][]int{nil}
	for c := 0; c <= b.Deviations && e.Fault == nil; c++ {
		for len(e.todo[c]) > 0 && e.Fault == nil {
			if e.Took = time.Since(start); b.Time > 0 && e.Took > b.Time {
				return e.Report
			}
			last := len(e.todo[c]) - 1
			prefix := e.todo[c][last]
			e.todo[c] = e.todo[c][:last]
			synctest.Test(t, func(*testing.T) { e.one(build, prefix, c) })
		}
		if e.Fault == nil {
			e.Complete = c
		}
	}
	e.Took = time.Since(start)
	return e.Report
}

// one executes a run that starts with the choices in prefix.
func (e *explorer) one(build func(*Run), prefix []int, cost int) {
	e.Runs++
	r := &Run{Server: NewProjectServer(), Store: NewStore(), started: time.Now()}
	build(r)
	defer func() {
		r.end()
		synctest.Wait()
	}()
	synctest.Wait()
	taken := append([]int(nil), prefix...)
	for step := 0; ; step++ {
		all := r.choices()
		if len(all) == 0 {
			if r.Final != nil {
				e.fail(r, r.Final())
			}
			break
		}
		pick := 0
		if step < len(prefix) {
			if pick = prefix[step]; pick >= len(all) {
				panic(fmt.Sprintf("a run is not the same again:\n%s", strings.Join(r.trace, "\n")))
			}
		} else {
			state := r.state()
			if e.visited[state] {
				break
			}
			e.visited[state] = true
			e.States++
			e.branch(taken, len(all), cost)
			taken = append(taken, 0)
		}
		if err := r.take(all[pick]); err != nil {
			e.fail(r, err)
			break
		}
		if e.Depth = max(e.Depth, step+1); step >= e.bounds.Steps {
			e.fail(r, errEndless)
			break
		}
	}
}

func (e *explorer) fail(r *Run, err error) {
	if err != nil && e.Fault == nil {
		e.Fault, e.Trace = err, r.trace
	}
}

// branch adds the other orders that start with the choices in taken.
func (e *explorer) branch(taken []int, choices, cost int) {
	if cost++; cost >= len(e.todo) {
		return
	}
	for i := choices - 1; i > 0; i-- {
		e.todo[cost] = append(e.todo[cost], append(append(make([]int, 0, len(taken)+1), taken...), i))
	}
}
