package dispatch

import (
	"sync"
	"testing"
	"time"
)

// TestBusyOfSeveral has two controllers tell what waits for their workers.
func TestBusyOfSeveral(t *testing.T) {
	cases := map[string]struct {
		reason        string
		first, second int
		loaded, is    bool
	}{
		"Neither": {"Nothing waits.", 0, 0, false, false},
		"First":   {"What waits for one controller is on its way.", 1, 0, false, true},
		"Second":  {"Or for the other.", 0, 1, false, true},
		"Loaded":  {"Each controller has workers of its own.", 0, 2, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &Busy{}
			b.Watch(func() int { return tc.first }, 32)
			b.Watch(func() int { return tc.second }, 8)
			if loaded, is := b.loaded(), b.is(time.Now()); loaded != tc.loaded || is != tc.is {
				t.Errorf("\n%s\nloaded(): %t, want %t; is(): %t, want %t", tc.reason, loaded, tc.loaded, is, tc.is)
			}
		})
	}
}

// TestBusyWatchedAtOnce has controllers that start at the same time tell what waits for their workers.
func TestBusyWatchedAtOnce(t *testing.T) {
	const controllers = 50
	b := &Busy{}
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range controllers {
		wg.Go(func() {
			<-start
			b.Watch(func() int { return 0 }, 1)
		})
	}
	close(start)
	wg.Wait()
	if n := len(b.all()); n != controllers {
		t.Errorf("all(): %d lines, want %d: one was lost", n, controllers)
	}
}
