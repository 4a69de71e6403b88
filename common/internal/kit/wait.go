package kit

import (
	"context"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// flight is a walk that has begun and not ended.
type flight struct {
	walks    *Walks
	ctx      context.Context //nolint:containedctx // It is that of the walk.
	priority int
	// slot is true while the walk has a slot, which was taken for tenant.
	slot   bool
	tenant string
	// again is the priority with which the object is queued at the end; nil if it is not.
	again *int
	// interrupted ends when the object has changed.
	interrupted context.Context //nolint:containedctx // It is a signal.
	interrupt   context.CancelFunc
	parked      parked
	// began is the moment at which it began, and at the time. unfinished is true if it has come to no result.
	began      int64
	at         time.Time
	unfinished bool
}

type flightKey struct{}

// Wait runs f, which waits for the stores at places. Meanwhile the walk of ctx has no slot. It returns ErrParked if a
// store has no place for the walk, and f did not run; and ErrInterrupted if f has failed after the object had changed,
// which ends the context of f. A walk in which f fails goes on after all others. Within f, Wait only runs its function.
func Wait(ctx context.Context, places []Place, f func(ctx context.Context) error) error {
	w, ok := ctx.Value(flightKey{}).(*flight)
	if !ok || !w.slot {
		return f(ctx)
	}
	if !w.walks.shares.enter(places, w.parked) {
		return ErrParked
	}
	stores, rest := split(sharesOf(places))
	releaseStores := sync.OnceFunc(func() { w.walks.shares.release(stores) })
	defer releaseStores()
	defer w.walks.shares.release(rest)
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.interrupted, cancel)()
	w.slot = false
	w.walks.working.Add(-1)
	w.walks.slots.give(w.tenant)
	err := f(waits)
	releaseStores() // The store is free for others while the walk waits for a slot.
	// Walks with an answer come after those that still have to ask, so that batches fill up.
	priority := w.priority - 1
	if err != nil {
		priority = queue.Low
	}
	// When a store fails, all walks that wait for it go on at once.
	w.tenant = tenantOf(places)
	w.walks.working.Add(1)
	if w.slot = w.walks.slots.take(ctx, w.tenant, priority); !w.slot {
		w.walks.working.Add(-1) // The operator stops. The walk goes on, so that it can store what f has made.
	}
	if err != nil && w.interrupted.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// tenantOf returns the tenant of a walk that waits at places; empty if it waits at none.
func tenantOf(places []Place) string {
	if len(places) == 0 {
		return ""
	}
	return places[0].Tenant
}

// Finish returns a context for the requests that store what a walk has made at a provider. They are still made while the
// operator stops, for up to timeout, but not after it has lost the lead.
func Finish(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	w, ok := ctx.Value(flightKey{}).(*flight)
	if !ok {
		return last, cancel
	}
	end := func() {
		if w.walks.lost.Load() || !w.walks.Stopping() {
			cancel()
		}
	}
	if ctx.Err() != nil {
		end()
		return last, cancel
	}
	undo := context.AfterFunc(ctx, end)
	return last, func() { undo(); cancel() }
}
