package generation

import (
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// newMemory returns an empty memory of the objects of this controller. random returns numbers in [0, 1) for jitter. An object that is created again takes
// over the values that no part holds.
func newMemory(random func() float64) *kit.Memory[request, object] {
	return &kit.Memory[request, object]{New: func(uid types.UID, o *object) *object {
		if o == nil {
			o = &object{attempts: attempts{random: random}, made: map[string]made{}}
		}
		heldBy(o.uid, o.carried) // The Secret of the former object may still hold them.
		o.uid = uid
		o.reset()
		return o
	}}
}

// object is the state of one object. Only one worker uses it at a time; event handlers use only attempts.
type object struct {
	attempts

	uid types.UID
	// part is the version of the part as this process last wrote or read it.
	part overlay.Version
	// misses counts reconciles in a row with outdated caches.
	misses int
	// lastReport is what was last written to the status, until the cache shows it.
	lastReport handoff.LastReport

	// made are values that no part holds yet, by the ID of their generator. Values that cannot be stored now are kept,
	// so that they are not made a second time.
	made map[string]made
	// carried are credentials of a part that a user deleted; the next part takes them over.
	carried []handoff.Retired
}

// made are values that no part holds yet, with their entry for the record of the part. Its version identifies values
// that the part already has.
type made struct {
	handoff.Entry
	values map[string][]byte
}

// burdened reports whether there are credentials to revoke that no part records.
func (o *object) burdened() bool { return len(o.made)+len(o.carried) > 0 }

// dropHeld drops values that the part already has, because the response to its write was lost.
func (o *object) dropHeld(rec handoff.Record) {
	maps.DeleteFunc(o.made, func(_ string, m made) bool { return rec.Has(m.Version) })
}

// stored drops what the part now holds: values by the IDs of their generators, and carried credentials.
func (o *object) stored(ids []string) {
	for _, id := range ids {
		delete(o.made, id)
	}
	o.carried = nil
}

// The back-off after a failure doubles from firstBackoff to lastBackoff.
const firstBackoff, lastBackoff = time.Second, 2 * time.Minute

// keepFailure is how long a failure is kept after its back-off. Without another attempt until then, the spec no longer asks for it.
const keepFailure = time.Hour

// attempts holds the back-off of failed work: by the ID of a generator's values, by credential, or for the write of a
// part. It is safe for concurrent use.
type attempts struct {
	// random returns numbers in [0, 1) for jitter.
	random func() float64

	mu sync.Mutex
	// Bound: the failures for which attempts are due; fail removes those of the past.
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
	maps.DeleteFunc(a.tries, func(_ string, t try) bool { return now.Sub(t.until) > keepFailure })
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

// failedFor returns the error of the last attempt for a spec, whatever the request was; nil if there is none.
func (a *attempts) failedFor(what, spec string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tries[what]
	if was, _, _ := strings.Cut(t.cause, " "); was != spec {
		return nil
	}
	return t.err
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
