package storehealth

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// patience is how long a worker waits for a check. A slower one goes on without it.
	patience = time.Second
	// slowChecks is how many stores of one namespace that were slow the last time are checked at once.
	slowChecks = 32
	// slowRetry is the longest wait for a place among them: the event that names the next can be lost with its store.
	slowRetry = 2 * time.Minute
)

// validated is what the loop remembers of a store.
type validated struct {
	uid types.UID

	// mu is held while the outcome of a check is written.
	mu sync.Mutex
	// round counts checks. The outcome of the last one counts, and cancel ends it.
	round  int
	cancel context.CancelFunc
	// slow is true if the last check outlasted a worker's patience. Nothing is known of another generation, or after
	// news of the store.
	slow       bool
	generation int64

	missed int
	// warnings that were told last.
	warnings provider.Warnings
}

// isSlow reports whether the store answers slowly, as far as is known.
func (v *validated) isSlow(generation int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.slow && v.generation == generation
}

// begin starts a round in place of the one before.
func (v *validated) begin(generation int64, cancel context.CancelFunc) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.endLocked()
	v.cancel, v.generation = cancel, generation
	return v.round
}

// end has the outcome of a check that is under way dropped.
func (v *validated) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.endLocked()
}

func (v *validated) endLocked() {
	v.round++
	if v.cancel != nil {
		v.cancel()
	}
}

// changed has the next check be the first of a store, as far as its speed goes.
func (v *validated) changed() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.slow = false
}

// outcome is what Reconcile returns.
type outcome struct {
	result reconcile.Result
	err    error
}

// validate checks a store. A worker waits for that, but not for long, and not at all for a store that is known to be
// slow: otherwise stores that hang would hold all workers.
func (r *Reconciler) validate(ctx context.Context, req reconcile.Request, s provider.Object, known *validated) (reconcile.Result, error) {
	slow, lane := known.isSlow(s.GetGeneration()), concurrency.Key{Beside: req.Namespace}
	if slow && !r.slow.Enter(lane, req.NamespacedName) {
		return queue.Later(slowRetry), nil
	}
	limited, cancel := context.WithTimeout(ctx, r.opts.CallTimeout)
	round := known.begin(s.GetGeneration(), cancel)
	done := make(chan outcome, 1)
	go func() {
		began := time.Now()
		found := r.check(limited, s)
		cancel()
		if slow {
			r.leave(lane)
		}
		known.mu.Lock()
		defer known.mu.Unlock()
		if known.round != round {
			done <- outcome{} // The store has changed, and is checked again already.
			return
		}
		known.slow = time.Since(began) > patience
		result, err := r.settle(ctx, req, s, known, found)
		done <- outcome{result, err}
	}()
	wait := patience
	if slow {
		wait = 0
	}
	select {
	case o := <-done:
		return o.result, o.err
	case <-time.After(wait):
	}
	go r.bringBack(ctx, req, done)
	return reconcile.Result{}, nil
}

// bringBack does what the queue does with the outcome of a worker.
func (r *Reconciler) bringBack(ctx context.Context, req reconcile.Request, done <-chan outcome) {
	switch o := <-done; {
	case o.err != nil:
		log.FromContext(ctx).Error(o.err, "Reconciler error")
		r.enqueue(req, max(time.Second, r.backoff.When(req)))
	case o.result.RequeueAfter > 0:
		r.enqueue(req, o.result.RequeueAfter)
	}
}

// leave gives a place among the slow checks of a namespace to the next store.
func (r *Reconciler) leave(lane concurrency.Key) {
	if next, waits := r.slow.Leave(lane); waits {
		r.enqueue(reconcile.Request{NamespacedName: next}, 0)
	}
}
