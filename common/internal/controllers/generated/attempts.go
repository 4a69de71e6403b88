package generated

import (
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The wait after a failure doubles from the first to the last.
const firstBackoff, lastBackoff = time.Second, 2 * time.Minute

// attempts hold back what has failed: the values of a generator by their ID, a credential, or the write of a part.
// It is safe for concurrent use.
type attempts struct {
	// random returns numbers in [0, 1) for jitter.
	random func() float64

	mu    sync.Mutex
	tries map[string]try
}

// try is what has come of the attempts to do a thing.
type try struct {
	failures int
	until    time.Time
	err      error
	cause    cause
}

// A cause is what values are made for. What failed for one is tried at once for another.
type cause struct{ spec, request string }

// wait returns how long the next try of a thing is held back.
func (a *attempts) wait(what string, c cause, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.tries[what]
	if !ok || t.cause != c {
		return 0
	}
	return t.until.Sub(now)
}

// fail notes a failure, and returns how long to wait.
func (a *attempts) fail(what string, c cause, now time.Time, err error) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tries[what]
	if t.cause != c {
		t = try{cause: c}
	}
	t.failures++
	wait := max(policy.Jitter(min(firstBackoff<<min(t.failures-1, 10), lastBackoff), a.random()), provider.RetryAfter(err))
	t.until, t.err = now.Add(wait), err
	if a.tries == nil {
		a.tries = map[string]try{}
	}
	a.tries[what] = t
	return wait
}

// failed returns the last failure of a thing; nil if it succeeded since.
func (a *attempts) failed(what string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tries[what].err
}

// succeed forgets the failures of a thing.
func (a *attempts) succeed(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tries, what)
}

// reset forgets all failures.
func (a *attempts) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tries = nil
}

// noWait has what failed tried again at once.
func (a *attempts) noWait() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, t := range a.tries {
		t.until = time.Time{}
		a.tries[k] = t
	}
}
