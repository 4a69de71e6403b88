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
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
)

// A Fetcher reads from stores. A worker never waits for an answer: when it arrives, the Fetcher enqueues the object
// again, and that pass takes the values with Take.
type Fetcher struct {
	Pool *dispatch.Pool
	// Backoff knows which objects have failed.
	Backoff workqueue.TypedRateLimiter[reconcile.Request]
	// Enqueue adds an object to the queue.
	Enqueue func(key types.NamespacedName, priority int)
	Now     func() time.Time
}

// A Want is a read that one pass asks for.
type Want struct {
	Key      types.NamespacedName
	Attempts *Attempts
	Attempt  Attempt
	Why      policy.Why
	Stores   Stores
	// Basis identifies the stored result of an earlier answer, as it was before this read; empty if there is none.
	// The answer can only replace that result: another operator might have stored a later one in the meantime.
	Basis string
	// Trace is the span of the pass.
	Trace trace.Parent
}

// An Answer is the result of a read.
type Answer struct {
	// Values are nil until all stores have answered.
	Values render.Values
	// At is when the stores were asked. Basis is the Basis of the Want.
	At    time.Time
	Basis string
	// Wait is how long the attempt is delayed because it failed.
	Wait time.Duration
	// Pending is true while the read waits for a store's answer.
	Pending bool
}

// Take starts an attempt, and returns its answer if there is one. If the attempt differs from a failed one, it
// changes w.Why from Retry to Changed, because the user might have fixed the cause.
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

// Ask asks the stores, unless ready is false because something else is missing. It returns a verdict if one of the
// stores cannot be asked now; otherwise nil.
func (f *Fetcher) Ask(w Want, ready bool) *status.Verdict {
	w.Attempts.Drop()
	loaders, refused := w.Stores.loaders(f.Pool)
	if refused != nil || !ready {
		return refused
	}
	urgency, priority := f.urgency(w)
	// Objects with an answer come after those that still have to ask, so that batches fill up. Failed objects come
	// after all others, so that a store that fails a thousand objects at once does not delay them.
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

// urgency ranks the read: requested and changed objects come before periodic refreshes. After a first failure every
// read has low priority.
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
