package generated

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// The wait after a failure doubles from the first to the last.
const firstBackoff, lastBackoff = time.Second, 2 * time.Minute

// object is what this process remembers of an object between two passes.
type object struct {
	mu  sync.Mutex
	uid types.UID
	// tries by the ID of a generator, or what else failed.
	tries map[string]try
	// made are values that no part holds yet, by the ID of their generator. What cannot be kept now is not
	// made a second time.
	made map[string]made
	// carried are credentials of a part that somebody has deleted; the next part takes them on.
	carried []handoff.Retired
	// kept is the resourceVersion of the part as this process last wrote or read it.
	kept string
	// misses counts the passes in a row under which the world has moved on.
	misses int
	// told is what the status was last made to say, until the cache shows it.
	told *handoff.Told
}

// try is what has come of the attempts to do a thing.
type try struct {
	failures int
	until    time.Time
	err      error
	// spec and request are those of the failure: others are tried at once.
	spec, request string
}

// made are values that no part holds yet.
type made struct {
	provider.Generated
	// version is what a part calls them, so that one that has them already is known.
	version   string
	generator handoff.Generator
	spec      string
	at        time.Time
	// cleans is true if the generator can revoke them.
	cleans bool
}

// object returns what is remembered of an object.
func (r *Reconciler) object(req request, uid types.UID) *object {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[req]
	if o == nil {
		o = &object{tries: map[string]try{}, made: map[string]made{}}
		r.objects[req] = o
	}
	if o.uid != uid {
		o.uid, o.tries, o.told = uid, map[string]try{}, nil
	}
	return o
}

func (r *Reconciler) peek(req request) *object {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[req]
}

// forget drops what is remembered of an object, unless it holds values that no part does: they have to be
// revoked first.
func (r *Reconciler) forget(req request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.objects[req]; o != nil && !o.burdened() {
		delete(r.objects, req)
	}
}

// burdened reports whether anything is to be revoked that no part tells of.
func (o *object) burdened() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.made)+len(o.carried) > 0
}

// settle forgets values that a part has: the answer to the write that kept them was lost.
func (o *object) settle(rec handoff.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, m := range o.made {
		if rec.Has(m.version) {
			delete(o.made, id)
		}
	}
}

// noWait has what failed tried again at once.
func (o *object) noWait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, t := range o.tries {
		t.until = time.Time{}
		o.tries[k] = t
	}
}

// wait returns how long the next try of a thing is held back.
func (o *object) wait(what, spec, request string, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, ok := o.tries[what]
	if !ok || t.spec != spec || t.request != request {
		return 0
	}
	return t.until.Sub(now)
}

// fail notes a failure, and returns how long to wait.
func (o *object) fail(what, spec, request string, now time.Time, err error, random float64) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.tries[what]
	if t.spec != spec || t.request != request {
		t = try{spec: spec, request: request}
	}
	t.failures++
	wait := max(policy.Jitter(min(firstBackoff<<min(t.failures-1, 10), lastBackoff), random), provider.RetryAfter(err))
	t.until, t.err = now.Add(wait), err
	o.tries[what] = t
	return wait
}

// failed returns the last failure of a thing; nil if it succeeded since.
func (o *object) failed(what string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tries[what].err
}

func (o *object) succeed(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.tries, what)
}
