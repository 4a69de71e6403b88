package generation

import (
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The back-off after a failure doubles from firstBackoff to lastBackoff.
const firstBackoff, lastBackoff = time.Second, 2 * time.Minute

// attempts holds the back-off of failed work: by the ID of a generator's values, by credential, or for the write of a
// part. It is safe for concurrent use.
type attempts struct {
	// random returns numbers in [0, 1) for jitter.
	random func() float64

	mu    sync.Mutex
	tries map[string]try
}

// try is the state of failed attempts at one thing.
type try struct {
	failures int
	until    time.Time
	err      error
	cause    string
}

// causeOf returns the cause of an attempt to make values: a spec and a refresh request. A new cause is not subject to
// the back-off of the former one.
func causeOf(spec, refresh string) string { return spec + " " + refresh }

// wait returns how long the next attempt must wait.
func (a *attempts) wait(what, cause string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok := a.tries[what]
	if !ok || t.cause != cause {
		return 0
	}
	return t.until.Sub(now)
}

// fail records a failure, and returns how long to wait.
func (a *attempts) fail(what, cause string, now time.Time, err error) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tries[what]
	if t.cause != cause {
		t = try{cause: cause}
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

// failed returns the error of the last attempt; nil if it succeeded.
func (a *attempts) failed(what string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tries[what].err
}

// succeed removes the failures of one thing.
func (a *attempts) succeed(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tries, what)
}

// reset removes all failures.
func (a *attempts) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tries = nil
}

// noWait ends all back-offs.
func (a *attempts) noWait() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, t := range a.tries {
		t.until = time.Time{}
		a.tries[k] = t
	}
}
