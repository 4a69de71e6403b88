package provider

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLocks has many callers work on one thing, one on another, and one that does not wait for long.
func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Locks[string]
		var all sync.WaitGroup
		inside, most := 0, 0
		for range 10 {
			all.Go(func() {
				unlock, err := l.Lock(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				defer unlock()
				inside++
				most = max(most, inside)
				time.Sleep(time.Second)
				inside--
			})
		}
		synctest.Wait()
		unlock, err := l.Lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := l.Lock(ctx, "a"); ClassOf(err) != Unavailable {
			t.Errorf("while others work on it: error %v", err)
		}
		all.Wait()
		if most != 1 || len(l.held) != 0 {
			t.Errorf("%d callers worked on one thing at once, and %d locks are left", most, len(l.held))
		}
	})
}
