package kit

import (
	"context"
	"slices"
	"sync"
)

// slots are a semaphore. Free slots go to those with the highest priority first, then to those that have waited
// longest.
type slots struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter
}

type waiter struct {
	priority int
	granted  chan struct{}
}

// take waits for a slot. It returns false if ctx has ended before.
func (s *slots) take(ctx context.Context, priority int) bool {
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		s.mu.Unlock()
		return true
	}
	w := &waiter{priority, make(chan struct{})}
	s.waiting = insert(s.waiting, w, func(w *waiter) int { return w.priority })
	s.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, w)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
	if i < 0 {
		s.give() // It was granted at the same time.
	}
	return false
}

// insert adds an element before those with a lower priority, and after those with the same.
func insert[T any](all []T, e T, priority func(T) int) []T {
	i, _ := slices.BinarySearchFunc(all, priority(e), func(o T, p int) int {
		if priority(o) >= p {
			return -1
		}
		return 1
	})
	return slices.Insert(all, i, e)
}

// give frees a slot.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0].granted)
	s.waiting = slices.Delete(s.waiting, 0, 1)
}
