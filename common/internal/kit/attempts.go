package kit

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// The delay after a failed attempt doubles from firstBackoff to lastBackoff.
const firstBackoff, lastBackoff = time.Second, time.Minute

// An Attempt identifies what the user asked for: a spec, labels and annotations, and a refresh request.
type Attempt struct {
	Generation int64
	// Metadata is a hash of the labels and annotations.
	Metadata string
	Request  string
	// Sources is a hash of what the object uses besides stores, such as templates in ConfigMaps.
	Sources string
}

// of returns what the user has asked for in the object itself.
func (a Attempt) of() Attempt {
	a.Sources = ""
	return a
}

// AttemptOf returns the current Attempt of an object, with a hash of its labels and annotations, and one of its sources.
func AttemptOf(o metav1.Object, metadata, sources string) Attempt {
	return Attempt{o.GetGeneration(), metadata, o.GetAnnotations()[v1alpha1.RefreshRequestAnnotation], sources}
}

// Attempts are the memory of the attempts of one object. The zero Attempts are those of an object without any.
type Attempts struct {
	mu       sync.Mutex
	last     Attempt
	seen     time.Time
	failures int
	// notBefore delays the next try of the last attempt. It is wall-clock time, like that of the queue.
	notBefore time.Time
	// due is an event that no attempt which began later has answered, and held a later one, for which a try is planned.
	due, held note
	// began is when the attempt under way began, and planned the time for which the last try because of an event was planned.
	began, planned time.Time
	// by is the event source that said so last.
	by string
}

// burstFor is the time within which changes of remote secrets of an object are one read.
const burstFor = time.Second

// note is an event: when it was received, and when it was noted here.
type note struct{ at, noted time.Time }

// Notify records that a remote secret of the object has changed, and which event source says so. It ends the delay of the next try.
// It returns how long the next try is to wait, because there was one a moment ago and more events may follow.
func (a *Attempts) Notify(at time.Time, by string) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.by, a.notBefore = by, time.Time{}
	if a.release(now); !now.Before(a.planned) {
		a.planned = later(now, a.planned.Add(burstFor))
	}
	if wait = a.planned.Sub(now); wait > 0 {
		a.held = note{at, now}
	} else {
		a.due = note{at, now}
	}
	return wait
}

// release makes an event due whose planned time has come.
func (a *Attempts) release(now time.Time) {
	if !a.held.at.IsZero() && !now.Before(a.planned) {
		a.due, a.held = a.held, note{}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// NotifiedBy returns the event source of the last event about the object.
func (a *Attempts) NotifiedBy() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.by
}

// Notified returns when an event last said that a remote secret of the object has changed, if no attempt that began later has ended;
// otherwise zero. An event for which a later try is planned does not count before that.
func (a *Attempts) Notified() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.release(time.Now())
	return a.due.at
}

// end ends the attempt under way. It answers the events before its begin.
func (a *Attempts) end() {
	if !a.due.noted.After(a.began) {
		a.due = note{}
	}
}

// Begin starts an attempt. It returns how long that is still delayed, and whether it differs from the last attempt of
// this process. A different attempt is not delayed: the user might have fixed the cause.
func (a *Attempts) Begin(next Attempt) (wait time.Duration, changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != next {
		changed = a.last != (Attempt{})
		if a.last.of() != next.of() {
			a.seen = time.Now()
		}
		a.last, a.failures, a.notBefore = next, 0, time.Time{}
	}
	a.began = time.Now()
	a.release(a.began)
	return max(0, time.Until(a.notBefore)), changed
}

// Begun reports whether this process has made an attempt for the object.
func (a *Attempts) Begun() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last != (Attempt{})
}

// Seen returns when this process first made an attempt for the object as it is now.
func (a *Attempts) Seen() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}

// Failed reports whether the last attempt has failed.
func (a *Attempts) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failures > 0
}

// Fail delays the next try of the last attempt, longer each time and at least for atLeast, and returns the delay.
func (a *Attempts) Fail(atLeast time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end()
	wait := max(min(firstBackoff<<min(a.failures, 16), lastBackoff), atLeast)
	a.failures++
	a.notBefore = time.Now().Add(wait)
	return wait
}

// Succeed ends the back-off after an attempt.
func (a *Attempts) Succeed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.end()
	a.failures, a.notBefore = 0, time.Time{}
}

// Free ends the delay of the next try, but not the series of failures.
func (a *Attempts) Free() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.notBefore = time.Time{}
}
