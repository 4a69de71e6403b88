package simulation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// steps is how many a run may have where nothing else is said.
const steps = 250

// Holds fails if a run of a world breaks what must hold. build makes the world anew for each run.
func Holds(t *testing.T, build func(*Run), b Bounds) {
	t.Helper()
	r := Explore(t, build, b)
	t.Log(r)
	if r.Fault != nil {
		t.Error("a run breaks what must hold")
	}
}

// Breaks fails if no run of a world breaks what must hold.
func Breaks(t *testing.T, build func(*Run)) {
	t.Helper()
	r := Explore(t, build, Bounds{Deviations: 3, Time: time.Minute})
	t.Log(r)
	if r.Fault == nil {
		t.Error("the fault is not found")
	}
}

// Bounds end an exploration.
type Bounds struct {
	// Deviations is how often something may happen out of the ordinary order.
	Deviations int
	// Steps is how many a run may have; more is a fault. Default 250.
	Steps int
	// Time is how long to go on; 0 for no bound.
	Time time.Duration
}

// A Report says what was explored.
type Report struct {
	// Complete is the highest number of deviations of which all orders were tried; -1 for none.
	Complete            int
	States, Runs, Depth int
	Took                time.Duration
	// Fault is what a run has broken, Trace that run; nil if none has.
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

// explorer holds the runs that are still to be made, by the number of their deviations.
type explorer struct {
	Report
	bounds  Bounds
	visited map[uint64]bool
	todo    [][][]int
}

// Explore tries the orders in which the steps of a world can happen, those that deviate less from the ordinary one first, until one
// breaks what shall hold, or the bounds are reached. It does not go on from a state that it has seen.
func Explore(t *testing.T, build func(*Run), b Bounds) Report {
	t.Helper()
	if b.Steps == 0 {
		b.Steps = steps
	}
	project() // outside of the bubbles
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

// one makes a run that begins as prefix says.
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

// branch notes the other orders that begin with what was taken.
func (e *explorer) branch(taken []int, choices, cost int) {
	if cost++; cost >= len(e.todo) {
		return
	}
	for i := choices - 1; i > 0; i-- {
		e.todo[cost] = append(e.todo[cost], append(append(make([]int, 0, len(taken)+1), taken...), i))
	}
}
