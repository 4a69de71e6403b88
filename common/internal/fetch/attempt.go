package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
)

// An Attempt identifies what the user asked for: a spec, labels and annotations, and a refresh request.
type Attempt struct {
	Generation int64
	// Metadata is the hash of the labels and annotations; see referrers.Metadata.
	Metadata string
	Request  string
}

// AttemptOf returns the current Attempt of an object. metadata is the hash of its labels and annotations.
func AttemptOf(es *v1alpha1.ExternalSecret, metadata string) Attempt {
	return Attempt{es.Generation, metadata, es.Annotations[v1alpha1.RefreshRequestAnnotation]}
}

// Attempts are those of one object: the last Attempt, and the read that is under way for it. The zero Attempts are
// those of an object that was not read yet.
type Attempts struct {
	mu   sync.Mutex
	last Attempt
	// notBefore delays the next try of the last attempt. It is wall-clock time, like that of the queue, and not that
	// of Options.Now.
	notBefore time.Time
	reading   *reading
}

// Begun reports whether this process has made an attempt for the object.
func (a *Attempts) Begun() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last != (Attempt{})
}

// Hold delays the next try of the last attempt.
func (a *Attempts) Hold(until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notBefore = until
}

// Drop cancels the read that is under way, if any.
func (a *Attempts) Drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reading != nil {
		a.reading.drop()
		a.reading = nil
	}
}

// Trace returns a context whose spans are children of the pass that started the read under way, so that a sync is one
// trace.
func (a *Attempts) Trace(ctx context.Context) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reading == nil {
		return ctx
	}
	return trace.Under(ctx, a.reading.asked)
}

// begin starts an attempt. It returns how long that is still delayed, and whether it equals the last one; a different
// attempt is not delayed.
func (a *Attempts) begin(next Attempt) (wait time.Duration, again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if again = a.last == next; !again {
		a.last, a.notBefore = next, time.Time{}
	}
	return time.Until(a.notBefore), again
}

// current returns the read that is under way for an attempt; nil if there is none.
func (a *Attempts) current(of Attempt) *reading {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reading == nil || a.reading.attempt != of {
		return nil
	}
	return a.reading
}

func (a *Attempts) set(r *reading) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reading = r
}
