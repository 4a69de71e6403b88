package fetch

import (
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// An Attempt identifies what a person asked for.
type Attempt struct {
	Generation int64
	// Metadata is the hash of the labels and annotations; see referrers.Metadata.
	Metadata string
	Request  string
}

// AttemptOf returns what is asked for by an object whose metadata has a hash.
func AttemptOf(es *v1alpha1.ExternalSecret, metadata string) Attempt {
	return Attempt{es.Generation, metadata, es.Annotations[v1alpha1.RefreshRequestAnnotation]}
}

// Attempts are those of one object: the last one, and the read that is under way for it. The zero Attempts are of an
// object for which nothing was read yet.
type Attempts struct {
	mu   sync.Mutex
	last Attempt
	// notBefore holds a retry back; it counts for one attempt. It is real time, as that of the queue, and not that of
	// Options.Now.
	notBefore time.Time
	reading   *reading
}

// Begun reports whether this process has tried anything.
func (a *Attempts) Begun() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last != (Attempt{})
}

// Hold keeps back the next try of the last attempt.
func (a *Attempts) Hold(until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notBefore = until
}

// Drop ends the read that is under way.
func (a *Attempts) Drop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reading != nil {
		a.reading.drop()
		a.reading = nil
	}
}

// begin returns how long an attempt is still held back, and whether it is the same as the last;
// another one is not held back.
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
