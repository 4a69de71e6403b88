// Package budget bounds the memory that answers of providers take in a process: those that are under way, and those that wait
// until a reconcile takes them. A hostile server can send as much as it likes, for as many stores as somebody creates.
package budget

import (
	"context"
	"sync"
)

// The bounds, in bytes.
const (
	// Total bounds those of all stores together, and PerStore those of one of them.
	Total    = 32 << 20
	PerStore = 8 << 20
	// Unbounded is how much of each answer is not counted while it arrives, so that ordinary secrets can always be read.
	Unbounded = 64 << 10
)

// A Budget is shared by the stores of a process.
type Budget struct {
	mu   sync.Mutex
	used int64
}

// Used returns how many bytes are counted.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Share returns what one store takes of it.
func (b *Budget) Share() *Share { return &Share{budget: b} }

// A Share is what one store takes of a Budget. It is safe for concurrent use.
type Share struct {
	budget *Budget
	used   int64
}

// Room reports whether bytes would fit: neither the store nor all stores together use up what they may.
func (s *Share) Room(n int64) bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.fitsLocked(n)
}

func (s *Share) fitsLocked(n int64) bool {
	return s.used+n <= PerStore && s.budget.used+n <= Total
}

// Take counts bytes and reports true, unless they do not fit.
func (s *Share) Take(n int64) bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if !s.fitsLocked(n) {
		return false
	}
	s.addLocked(n)
	return true
}

// Add counts bytes that are there, whether they fit or not. A negative number releases them.
func (s *Share) Add(n int64) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.addLocked(n)
}

func (s *Share) addLocked(n int64) {
	s.used += n
	s.budget.used += n
}

// Used returns how many bytes are counted for the store.
func (s *Share) Used() int64 {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.used
}

type key struct{}

// With returns a context whose requests count for a store.
func With(ctx context.Context, s *Share) context.Context { return context.WithValue(ctx, key{}, s) }

// Of returns the Share of a context; nil if its requests count for no store.
func Of(ctx context.Context) *Share {
	s, _ := ctx.Value(key{}).(*Share)
	return s
}
