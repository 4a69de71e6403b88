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
	// Time that a worker waits for a check. A slower check continues without the worker.
	patience = time.Second
	// slowChecks is the maximum number of concurrent checks of stores of one namespace that were slow last time.
	slowChecks = 32
	// slowRetry is the maximum delay of a store that waits for one of these checks to end: the notification of the
	// next store is lost if that store is deleted.
	slowRetry = 2 * time.Minute
)

// validated is the controller's memory of a store.
type validated struct {
	uid types.UID

	// mu is held while the result of a check is written.
	mu sync.Mutex
	// round counts checks. Only the result of the last one is used; cancel ends it.
	round  int
	cancel context.CancelFunc
	// slow is true if the last check of this generation took longer than a worker waits. It is reset when credentials
	// of the store change or a read was refused.
	slow       bool
	generation int64

	missed int
	// warnings are the warnings of the last check.
	warnings provider.Warnings
}

// isSlow reports whether the store is known to answer slowly for this generation.
func (v *validated) isSlow(generation int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.slow && v.generation == generation
}

// begin starts a check, which replaces the one in progress. It returns the new round.
func (v *validated) begin(generation int64, cancel context.CancelFunc) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.endLocked()
	v.cancel, v.generation = cancel, generation
	return v.round
}

// end drops the result of a check in progress.
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

// changed resets the known speed of the store.
func (v *validated) changed() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.slow = false
}

// outcome is the result of Reconcile.
type outcome struct {
	result reconcile.Result
	err    error
}

// validate checks a store. A worker waits for the check, but only for a short time, and not at all if the store is
// known to be slow: otherwise stores that hang would block all workers.
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
			done <- outcome{} // A later check of the store has begun.
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

// bringBack requeues a store by the outcome of a check that no worker waits for any longer.
func (r *Reconciler) bringBack(ctx context.Context, req reconcile.Request, done <-chan outcome) {
	switch o := <-done; {
	case o.err != nil:
		log.FromContext(ctx).Error(o.err, "Reconciler error")
		r.enqueue(req, max(time.Second, r.backoff.When(req)))
	case o.result.RequeueAfter > 0:
		r.enqueue(req, o.result.RequeueAfter)
	}
}

// leave ends a slow check of a namespace, and enqueues the next store that waits for one.
func (r *Reconciler) leave(lane concurrency.Key) {
	if next, waits := r.slow.Leave(lane); waits {
		r.enqueue(reconcile.Request{NamespacedName: next}, 0)
	}
}
