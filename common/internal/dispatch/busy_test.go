package dispatch

import (
	"sync"
	"testing"
	"time"
)

// TestBusyOfSeveral uses the queues of two controllers.
func TestBusyOfSeveral(t *testing.T) {
	cases := map[string]struct {
		reason        string
		first, second int
		loaded, is    bool
	}{
		"Neither": {"Empty queues mean an idle process.", 0, 0, false, false},
		"First":   {"An object in the first queue means more requests.", 1, 0, false, true},
		"Second":  {"An object in the second queue means more requests.", 0, 1, false, true},
		"Loaded":  {"The load is that of one controller and its own workers.", 0, 2, true, true},
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

// TestBusyWatchedAtOnce calls Watch for several controllers at the same time.
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
