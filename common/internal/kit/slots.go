package kit

import (
	"context"
	"slices"
	"sync"
)

// slots are a semaphore. Free slots go to those with the highest priority first, then to those that have waited
// longest. A tenant has at most its part of them.
type slots struct {
	// each is the part of a tenant.
	each int

	mu      sync.Mutex
	free    int
	taken   map[string]int
	waiting []*waiter
}

type waiter struct {
	tenant   string
	priority int
	granted  chan struct{}
}

// newSlots returns n free slots.
func newSlots(n, each int) *slots { return &slots{each: each, free: n, taken: map[string]int{}} }

// take waits for a slot for a tenant; an empty one has no part of its own. It returns false if ctx has ended before.
func (s *slots) take(ctx context.Context, tenant string, priority int) bool {
	w := &waiter{tenant, priority, make(chan struct{})}
	s.mu.Lock()
	if s.grantsLocked(w) {
		s.mu.Unlock()
		return true
	}
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
		s.give(tenant) // It was granted at the same time.
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

// grantsLocked gives a slot to a waiter if it can have one.
func (s *slots) grantsLocked(w *waiter) bool {
	if s.free == 0 || w.tenant != "" && s.taken[w.tenant] >= s.each {
		return false
	}
	s.free--
	s.taken[w.tenant]++
	return true
}

// give frees a slot that was taken for a tenant.
func (s *slots) give(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	if s.taken[tenant]--; s.taken[tenant] == 0 {
		delete(s.taken, tenant)
	}
	if i := slices.IndexFunc(s.waiting, s.grantsLocked); i >= 0 {
		close(s.waiting[i].granted)
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}
