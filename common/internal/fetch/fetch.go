package fetch

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/render"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// A Fetcher asks stores. A worker never waits for them: the answer brings the object back, and the pass after it finds
// the values here.
type Fetcher struct {
	Pool *dispatch.Pool
	// Backoff tells which objects have failed.
	Backoff workqueue.TypedRateLimiter[reconcile.Request]
	// Enqueue brings an object back.
	Enqueue func(key types.NamespacedName, priority int)
	Now     func() time.Time
}

// A Want is what one pass wants to have read.
type Want struct {
	Key      types.NamespacedName
	Attempts *Attempts
	Attempt  Attempt
	Why      policy.Why
	Stores   Stores
	// Basis identifies what is stored of an earlier answer, as it was before the stores are asked; empty for none. The
	// answer may replace that and nothing else: what another operator has stored meanwhile may be of a later answer.
	Basis string
}

// An Answer is what stores have said.
type Answer struct {
	// Values are nil until all of them have answered.
	Values render.Values
	// At is when they were asked, and Basis that of the Want by which they were.
	At    time.Time
	Basis string
	// Wait is how long the attempt is held back, since it has failed.
	Wait time.Duration
	// Pending is true while they have yet to answer.
	Pending bool
}

// Take begins an attempt, and returns the answer to it if there is one. It corrects why it is made: somebody may have
// mended what the last attempt failed for.
func (f *Fetcher) Take(w *Want) Answer {
	known := w.Attempts.Begun()
	wait, again := w.Attempts.begin(w.Attempt)
	if !again {
		f.Backoff.Forget(reconcile.Request{NamespacedName: w.Key})
		if known && w.Why == policy.Retry {
			w.Why = policy.Changed
		}
	}
	r := w.Attempts.current(w.Attempt)
	if r == nil {
		return Answer{Wait: max(0, wait)}
	}
	values, ok := r.take()
	if !ok {
		return Answer{Pending: true}
	}
	w.Attempts.set(nil)
	return Answer{Values: w.Stores.within(values), At: r.at, Basis: r.basis}
}

// Ask asks the stores, unless ready is false: then something else than they is missing. It returns the verdict that one
// of them may not be asked now; nil if all may.
func (f *Fetcher) Ask(w Want, ready bool) *status.Verdict {
	w.Attempts.Drop()
	loaders, refused := w.Stores.loaders(f.Pool)
	if refused != nil || !ready {
		return refused
	}
	urgency, priority := f.urgency(w)
	// What has its answer goes behind what has yet to ask, so that batches fill. What failed goes
	// behind everything, so that a store that fails a thousand objects at once delays no other.
	done := func(failed bool) {
		if failed {
			f.Enqueue(w.Key, queue.Low)
			return
		}
		f.Enqueue(w.Key, priority-1)
	}
	r := read(w, f.Now(), loaders, urgency, done)
	w.Attempts.set(r)
	r.start(done)
	return nil
}

// urgency ranks the read: what a person waits for goes before what merely is due, and after a first
// failure everything is low.
func (f *Fetcher) urgency(w Want) (dispatch.Urgency, int) {
	if f.Backoff.NumRequeues(reconcile.Request{NamespacedName: w.Key}) > 0 {
		return dispatch.Periodic, queue.Low
	}
	switch w.Why {
	case policy.Requested:
		return dispatch.Fresh, queue.High
	case policy.Changed, policy.First, policy.TargetLost:
		return dispatch.New, queue.High
	case policy.Retry, policy.Elapsed, policy.NotDue:
	}
	return dispatch.Periodic, queue.Low
}
