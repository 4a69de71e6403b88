package watch_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/internal/watch"
)

func TestChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		// do adds one owner and returns it. The owner must be called once for each time that do waits, and no more.
		do func(e *env) *owner
	}{
		"Unchanged": {"An owner that knows the current state is not called.", func(e *env) *owner {
			return e.adds("db", "a", e.create("db"))
		}},
		"Absent": {"The absence of a Secret is a state, too.", func(e *env) *owner {
			return e.adds("db", "a", "")
		}},
		"Changed": {"A change calls the owner.", func(e *env) *owner {
			o := e.adds("db", "a", e.create("db"))
			e.synced("db")
			e.change("db")
			o.wantCall()
			e.change("db")
			o.wantCall()
			return o
		}},
		"ChangedBeforeTheWatch": {"A change between the read and the first event calls the owner.", func(e *env) *owner {
			read := e.create("db")
			e.change("db")
			o := e.adds("db", "a", read)
			o.wantCall()
			return o
		}},
		"DeletedBeforeTheWatch": {"A deletion before the first event calls the owner.", func(e *env) *owner {
			read := e.create("db")
			e.delete("db")
			o := e.adds("db", "a", read)
			o.wantCall()
			return o
		}},
		"CreatedBeforeTheWatch": {"A creation before the first event calls the owner.", func(e *env) *owner {
			e.create("db")
			o := e.adds("db", "a", "")
			o.wantCall()
			return o
		}},
		"RecreatedBeforeTheWatch": {"A Secret that was deleted and created again calls the owner.", func(e *env) *owner {
			read := e.create("db")
			e.delete("db")
			e.create("db")
			o := e.adds("db", "a", read)
			o.wantCall()
			return o
		}},
		"Created": {"A creation calls the owner.", func(e *env) *owner {
			o := e.adds("db", "a", "")
			e.synced("db")
			e.create("db")
			o.wantCall()
			return o
		}},
		"DeletedAndRecreated": {"Deletion and re-creation are two changes.", func(e *env) *owner {
			o := e.adds("db", "a", e.create("db"))
			e.synced("db")
			e.delete("db")
			o.wantCall()
			e.create("db")
			o.wantCall()
			return o
		}},
		"LateToARunningWatch": {"An owner that joins a running watch with an old version is called at once.", func(e *env) *owner {
			read := e.create("db")
			e.change("db")
			e.synced("db")
			o := e.adds("db", "a", read)
			o.wantCall()
			return o
		}},
		"OthersOfThatNamespace": {"Changes of other Secrets do not call the owner.", func(e *env) *owner {
			o := e.adds("db", "a", e.create("db"))
			e.synced("db")
			e.change2("db2")
			return o
		}},
		"AddedAgain": {"A second Add replaces the version that the owner knows.", func(e *env) *owner {
			read := e.create("db")
			o := e.adds("db", "a", read)
			e.synced("db")
			e.change("db")
			o.wantCall()
			now := e.change("db")
			o.wantCall()
			o.adds("db", now)
			return o
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			o := tc.do(e)
			// When a second owner, which knows no version, is called, all earlier events have arrived. After that,
			// only the later change must call the owner.
			e.synced("db")
			o.wantNoCall()
			if _, err := e.secrets.Get(e.ctx, "db", metav1.GetOptions{}); kerrors.IsNotFound(err) {
				e.create("db")
			} else {
				e.change("db")
			}
			o.wantCall()
			o.wantNoCall()
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

// change2 creates, changes and deletes another Secret.
func (e *env) change2(name string) {
	e.Helper()
	e.create(name)
	e.change(name)
	e.delete(name)
}

// TestWatchBehindTheReading checks that a watch older than the read of a new owner does not call it: the owner knows
// a later state.
func TestWatchBehindTheReading(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(e *env)
		move   func(e *env) string
	}{
		"Changed": {"The owner has read a change that the watch has not seen yet.",
			func(e *env) { e.create("db") },
			func(e *env) string { return e.change("db") }},
		"Recreated": {"The owner has read a recreated Secret.",
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
			first.wantCall()

			release := e.wire.hold()
			known := tc.move(e)
			later := e.adds("db", "later", known)
			release()
			first.wantCall()
			last := e.adds("db", "last", known)
			e.change("db")
			last.wantCall()
			later.wantCall()
			later.wantNoCall()
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
		o.wantCall()
		o.wantNoCall()
	}
	if open, begun := e.wire.counts(); open != 1 || begun != 1 || e.watches.Len() != 1 {
		t.Errorf("watches: %d are open, %d were started, Len() is %d; want 1 each", open, begun, e.watches.Len())
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
	b.wantCall()
	a.wantNoCall()

	e.watches.Remove("no owner")
	e.wantOpen(1)
	e.watches.Remove("b")
	e.wantOpen(0)

	// The watch can be added again, and then knows the changes in between.
	b.adds("two", two)
	b.wantCall()
	e.watches.Remove("b")
	e.wantOpen(0)
}

// TestPerNamespace observes more objects of a namespace than it may have watches. Changes of the others are found, too.
func TestPerNamespace(t *testing.T) {
	e := newEnv(t)
	e.watches.PerNamespace, e.watches.ReadsPerSecond = 2, 100
	names := []string{"a", "b", "c", "d"}
	var owners []*owner
	for _, name := range names {
		owners = append(owners, e.adds(name, name, e.create(name)))
	}
	e.wantOpen(2)
	absent := e.adds("absent", "absent", "")
	several := &owner{e: e, name: "several", called: make(chan struct{}, 1000)}
	e.watches.Add(watch.SecretsRef(e.ns, "of=several"), "several", "", func() { several.called <- struct{}{} })
	for i, name := range names {
		e.change(name)
		owners[i].wantCall()
	}
	e.create("absent")
	absent.wantCall()
	e.delete("d")
	owners[3].wantCall()
	s, err := e.secrets.Create(e.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"of": "several"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	several.wantCall()
	if _, begun := e.wire.counts(); begun != 2 {
		t.Errorf("%d watches were started, want 2", begun)
	}
	e.watches.Remove("a")
	e.eventually(func() string {
		if open, begun := e.wire.counts(); open != 2 || begun != 3 {
			return fmt.Sprintf("%d watches are open, %d were started, want 2 and 3: an object that was read is watched", open, begun)
		}
		return ""
	})
	e.delete(s.Name)
	several.wantCall()
	for _, o := range append(owners, absent, several) {
		o.wantNoCall()
	}
	for _, name := range append(names, "absent", "several") {
		e.watches.Remove(name)
	}
	e.wantOpen(0)
	if n := e.watches.Len(); n != 0 {
		t.Errorf("Len() is %d without owners", n)
	}
}

// TestWatchSurvivesTheEndOfItsStream checks that a broken watch reconnects and reports the changes in between.
func TestWatchSurvivesTheEndOfItsStream(t *testing.T) {
	e := newEnv(t)
	o := e.adds("db", "a", e.create("db"))
	e.wantOpen(1)
	e.synced("db")
	e.wire.cut()
	e.change("db")
	o.wantCall()
	o.wantNoCall()
	if _, begun := e.wire.counts(); begun < 2 {
		t.Errorf("%d watches were started, want more than one", begun)
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

// reflectors returns the number of goroutines that run reflectors.
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
