package provider

import (
	"context"
	"sync"
)

// Locks let one caller at a time work on each of several things, for example write a secret. The zero Locks are ready to use.
type Locks[K comparable] struct {
	mu sync.Mutex
	// Bound: one per caller that works now.
	held map[K]chan struct{}
}

// Lock waits until the caller alone works on a thing. The caller calls unlock afterwards. If ctx ends before, the error is of class
// Unavailable.
func (l *Locks[K]) Lock(ctx context.Context, of K) (unlock func(), err error) {
	for {
		l.mu.Lock()
		held := l.held[of]
		if held == nil {
			if l.held == nil {
				l.held = map[K]chan struct{}{}
			}
			free := make(chan struct{})
			l.held[of] = free
			l.mu.Unlock()
			return func() { l.unlock(of, free) }, nil
		}
		l.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, NewError(Unavailable, "timeout while waiting for another write of the same secret; retrying")
		}
	}
}

func (l *Locks[K]) unlock(of K, free chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, of)
	close(free)
}
