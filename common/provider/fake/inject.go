package fake

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A Timing is how often a fault applies, and how long it delays a call.
type Timing struct {
	// Times limits the affected calls, or entries; 0 means until the fault is removed.
	Times int
	// Latency delays the call, at most until its context ends.
	Latency time.Duration
	// Hang blocks the call until its context ends or the fault is removed.
	Hang bool
}

// Faults are the faults that a service injects. They are safe for concurrent use. The zero Faults has none. A service
// embeds it.
type Faults[F interface{ Timing() Timing }] struct {
	mu     sync.RWMutex
	lastID int
	active []*Injected[F]
}

// An Injected is a fault that is injected.
type Injected[F interface{ Timing() Timing }] struct {
	Fault F

	id      string
	left    int // of Times
	removed chan struct{}
}

// Inject injects a fault. The oldest of several matching faults applies. The returned function removes the fault, and
// ends the calls that hang in it. It can be called several times.
func (s *Faults[F]) Inject(f F) (remove func()) {
	id := s.InjectID(f)
	return func() { s.Remove(id) }
}

// InjectID is Inject, and returns the argument for Remove.
func (s *Faults[F]) InjectID(f F) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	id = strconv.Itoa(s.lastID)
	s.active = append(s.active, &Injected[F]{Fault: f, id: id, left: f.Timing().Times, removed: make(chan struct{})})
	return id
}

// Remove removes one fault, and reports whether it existed.
func (s *Faults[F]) Remove(id string) bool {
	return s.remove(func(f *Injected[F]) bool { return f.id == id })
}

// ClearFaults removes all faults, and ends the calls that hang.
func (s *Faults[F]) ClearFaults() { s.remove(func(*Injected[F]) bool { return true }) }

func (s *Faults[F]) remove(which func(*Injected[F]) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.active)
	s.active = slices.DeleteFunc(s.active, func(f *Injected[F]) bool {
		if !which(f) {
			return false
		}
		close(f.removed)
		return true
	})
	return len(s.active) < before
}

// Take returns the oldest fault that matches and is not used up, and counts its use. It returns nil if there is none.
func (s *Faults[F]) Take(matches func(F) bool) *Injected[F] {
	s.mu.RLock()
	idle := len(s.active) == 0
	s.mu.RUnlock()
	if idle {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.active {
		if f.Fault.Timing().Times > 0 && f.left == 0 || !matches(f.Fault) {
			continue
		}
		f.left--
		return f
	}
	return nil
}

// Suffer delays a call as the oldest matching fault specifies, and returns that fault; the zero one if there is none. An error means
// that ctx ended first.
func (s *Faults[F]) Suffer(ctx context.Context, matches func(F) bool) (fault F, err error) {
	in := s.Take(matches)
	if in == nil {
		return fault, nil
	}
	return in.Fault, in.Delay(ctx)
}

// Delay delays a call as the fault specifies. An error means that ctx ended first.
func (f *Injected[F]) Delay(ctx context.Context) error {
	t := f.Fault.Timing()
	if err := Pause(ctx, t.Latency); err != nil {
		return err
	}
	if !t.Hang {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-f.removed:
		return nil
	}
}

// Pause waits. An error means that ctx ended first.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
