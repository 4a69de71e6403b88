package watch_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTold(t *testing.T) {
	cases := map[string]struct {
		reason string
		// do adds one owner and returns it; it must be told once for each time that it waits, and
		// no more.
		do func(e *env) *owner
	}{
		"Unchanged": {"Who knows the present state is told nothing.", func(e *env) *owner {
			return e.adds("db", "a", e.create("db"))
		}},
		"Absent": {"That there is no Secret is a state, too.", func(e *env) *owner {
			return e.adds("db", "a", "")
		}},
		"Changed": {"A change is told.", func(e *env) *owner {
			o := e.adds("db", "a", e.create("db"))
			e.synced("db")
			e.change("db")
			o.wantTold()
			e.change("db")
			o.wantTold()
			return o
		}},
		"ChangedBeforeTheWatch": {"So is one between the read and the first event.", func(e *env) *owner {
			read := e.create("db")
			e.change("db")
			o := e.adds("db", "a", read)
			o.wantTold()
			return o
		}},
		"DeletedBeforeTheWatch": {"So is a deletion.", func(e *env) *owner {
			read := e.create("db")
			e.delete("db")
			o := e.adds("db", "a", read)
			o.wantTold()
			return o
		}},
		"CreatedBeforeTheWatch": {"So is a creation.", func(e *env) *owner {
			e.create("db")
			o := e.adds("db", "a", "")
			o.wantTold()
			return o
		}},
		"MadeAnewBeforeTheWatch": {"Another Secret of that name is another.", func(e *env) *owner {
			read := e.create("db")
			e.delete("db")
			e.create("db")
			o := e.adds("db", "a", read)
			o.wantTold()
			return o
		}},
		"Created": {"A Secret that comes is told.", func(e *env) *owner {
			o := e.adds("db", "a", "")
			e.synced("db")
			e.create("db")
			o.wantTold()
			return o
		}},
		"DeletedAndMadeAnew": {"Deletion and re-creation are two changes.", func(e *env) *owner {
			o := e.adds("db", "a", e.create("db"))
			e.synced("db")
			e.delete("db")
			o.wantTold()
			e.create("db")
			o.wantTold()
			return o
		}},
		"LateToARunningWatch": {"Who joins a running watch with old knowledge is told at once.", func(e *env) *owner {
			read := e.create("db")
			e.change("db")
			e.synced("db")
			o := e.adds("db", "a", read)
			o.wantTold()
			return o
		}},
		"OthersOfThatNamespace": {"Other Secrets are not watched.", func(e *env) *owner {
			o := e.adds("db", "a", e.create("db"))
			e.synced("db")
			e.change2("db2")
			return o
		}},
		"AddedAgain": {"A new reading replaces the former one.", func(e *env) *owner {
			read := e.create("db")
			o := e.adds("db", "a", read)
			e.synced("db")
			e.change("db")
			o.wantTold()
			now := e.change("db")
			o.wantTold()
			o.adds("db", now)
			return o
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := tc.do(e)
			// All that happened so far has arrived when an owner that knows nothing is told, and
			// a later change that the owner is waiting for is the only one that it gets.
			e.synced("db")
			o.wantSilence()
			if _, err := e.secrets.Get(e.ctx, "db", metav1.GetOptions{}); kerrors.IsNotFound(err) {
				e.create("db")
			} else {
				e.change("db")
			}
			o.wantTold()
			o.wantSilence()
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

// change2 makes, changes and deletes another Secret.
func (e *env) change2(name string) {
	e.Helper()
	e.create(name)
	e.change(name)
	e.delete(name)
}

// A watch that is behind the reading of a new owner tells it nothing: it would only be told what it
// knows already.
func TestWatchBehindTheReading(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(e *env)
		move   func(e *env) string
	}{
		"Changed": {"The owner has read a change that the watch has not seen yet.",
			func(e *env) { e.create("db") },
			func(e *env) string { return e.change("db") }},
		"MadeAnew": {"The owner has read another Secret.",
			func(e *env) { e.create("db") },
			func(e *env) string { e.delete("db"); return e.create("db") }},
		"Created": {"The watch has seen the deletion only.",
			func(e *env) { e.create("db"); e.delete("db") },
			func(e *env) string { return e.create("db") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			tc.before(e)
			first := e.adds("db", "first", "0")
			first.wantTold()

			release := e.wire.hold()
			known := tc.move(e)
			later := e.adds("db", "later", known)
			release()
			first.wantTold()
			last := e.adds("db", "last", known)
			e.change("db")
			last.wantTold()
			later.wantTold()
			later.wantSilence()
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestOneWatchForManyOwners(t *testing.T) {
	e := newEnv(t)
	read := e.create("db")
	var owners []*owner
	for i := range 50 {
		owners = append(owners, e.adds("db", fmt.Sprint(i), read))
	}
	e.change("db")
	for _, o := range owners {
		o.wantTold()
		o.wantSilence()
	}
	if open, begun := e.wire.counts(); open != 1 || begun != 1 || e.watches.Len() != 1 {
		t.Errorf("watches: %d are open, %d were begun, Len() is %d; want 1 each", open, begun, e.watches.Len())
	}
	for i, o := range owners {
		if n := e.watches.Len(); n != 1 {
			t.Errorf("Len() is %d with %d owners left", n, len(owners)-i)
		}
		e.watches.Remove(o.name)
	}
	if n := e.watches.Len(); n != 0 {
		t.Errorf("Len() is %d without owners", n)
	}
	e.wantOpen(0)
}

func (e *env) wantOpen(n int) {
	e.Helper()
	e.eventually(func() string {
		if open, _ := e.wire.counts(); open != n {
			return fmt.Sprintf("%d watches are open, want %d", open, n)
		}
		return ""
	})
}

func TestRemove(t *testing.T) {
	e := newEnv(t)
	one, two := e.create("one"), e.create("two")
	a := e.adds("one", "a", one)
	a.adds("two", two)
	b := e.adds("two", "b", two)
	e.wantOpen(2)

	e.watches.Remove("a")
	e.wantOpen(1)
	if n := e.watches.Len(); n != 1 {
		t.Errorf("Len() is %d, want 1", n)
	}
	e.change("one")
	e.change("two")
	b.wantTold()
	a.wantSilence()

	e.watches.Remove("nobody")
	e.wantOpen(1)
	e.watches.Remove("b")
	e.wantOpen(0)

	// It can be had again, and then knows all that happened meanwhile.
	b.adds("two", two)
	b.wantTold()
	e.watches.Remove("b")
	e.wantOpen(0)
}

// A watch that breaks comes back, and what happened in between is told.
func TestWatchSurvivesTheEndOfItsStream(t *testing.T) {
	e := newEnv(t)
	o := e.adds("db", "a", e.create("db"))
	e.wantOpen(1)
	e.synced("db")
	e.wire.cut()
	e.change("db")
	o.wantTold()
	o.wantSilence()
	if _, begun := e.wire.counts(); begun < 2 {
		t.Errorf("%d watches were begun, want more than one", begun)
	}
}

func TestNoGoroutineIsLeft(t *testing.T) {
	e := newLoneEnv(t) // Not in parallel, so all goroutines of watches are those of this test.
	for i := range 20 {
		name := fmt.Sprintf("s%d", i)
		e.adds(name, fmt.Sprintf("o%d", i), e.create(name))
	}
	e.wantOpen(20)
	if n := reflectors(); n < 20 {
		t.Errorf("%d goroutines found, so this test counts the wrong ones", n)
	}
	for i := range 20 {
		e.watches.Remove(fmt.Sprintf("o%d", i))
	}
	e.wantOpen(0)
	e.eventually(func() string {
		if n := reflectors(); n > 0 {
			return fmt.Sprintf("%d goroutines of reflectors are left", n)
		}
		return ""
	})
}

// reflectors returns how many goroutines work for reflectors.
func reflectors() int {
	buf := make([]byte, 16<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "cache.(*Reflector)") || strings.Contains(g, "watch.(*StreamWatcher)") {
			n++
		}
	}
	return n
}
