package kit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

var (
	// ErrParked ends a walk whose store has no place for it. The object is queued again when a place is free.
	ErrParked = errors.New("the store serves as many objects as it is allowed to at the same time")
	// ErrInterrupted ends a walk whose object has changed. The object is queued again.
	ErrInterrupted = errors.New("the object has changed while the operator waited for a store")
)

// Walks are what the walks of all controllers of a process share.
type Walks struct {
	// Stopping reports whether the operator was told to stop. Otherwise the end of its context means that it has lost the
	// lead. Default: it was told to.
	Stopping func() bool

	// quotas have the slots: a walk that works has one, and none while it waits for a store.
	quotas *quota.Quotas
	// places are those of the walks in flight.
	places   *semaphore.Weighted
	inFlight int64
	shares   *shares
	// lost is true once the operator has lost the lead.
	lost atomic.Bool
	// working counts the walks that have a slot or wait for one, made the controllers, and moments the moments.
	working, made, moments atomic.Int64

	mu sync.Mutex
	// started are the controllers that have a queue.
	started []interface {
		queued() int
		oldest(source any) int64
	}
}

// InFlight is the usual maximum number of walks that have begun and not ended.
//
//limit:objects Objects that wait for a store: reads, pushes, generated values and validations | metric=directsecrets_share_waiting{resource="walks"} | One more waits for its turn without a call, new objects first. One store has an eighth of them, and the stores that one namespace uses a quarter.
const InFlight = 1024

// NewWalks returns Walks with slots of quotas, and with a maximum number of walks that have begun and not ended. One store can have an
// eighth of them, and the stores that one namespace uses a quarter.
func NewWalks(q *quota.Quotas, inFlight int) *Walks {
	return &Walks{
		quotas: q, Stopping: func() bool { return true },
		places: semaphore.NewWeighted(int64(inFlight)), inFlight: int64(inFlight),
		shares: newShares(inFlight, func(tenant string) func() {
			t := q.Tenant(tenant)
			done := t.Waits("walks")
			return func() {
				done()
				t.EndUse()
			}
		}),
	}
}

// Start implements manager.Runnable. It returns when all walks have ended after ctx did, so that none writes after
// the manager has released the Lease.
func (w *Walks) Start(ctx context.Context) error {
	if metrics.Registry.Register(w.quotas) == nil { // Of several operators in a process, the first one is shown.
		defer metrics.Registry.Unregister(w.quotas)
	}
	<-ctx.Done()
	w.lost.Store(!w.Stopping())
	return w.places.Acquire(context.WithoutCancel(ctx), w.inFlight) // No walk can begin any longer.
}

// Load returns the number of objects that are due or in work. An object that waits for a store does not count.
func (w *Walks) Load() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := int(w.working.Load())
	for _, c := range w.started {
		n += c.queued()
	}
	return n
}

// flight is a walk that has begun and not ended.
type flight struct {
	walks *Walks
	// parked is what is parked if a store has no place, and waits is true if it was.
	parked parked
	waits  bool
	// endSlot gives back the slot; nil while the walk has none.
	endSlot func()
	// interrupted ends when the object has changed.
	interrupted context.Context //nolint:containedctx // It is a signal.
	interrupt   context.CancelFunc
	// began is the moment at which it began, and at the time.
	began int64
	at    time.Time
}

type flightKey struct{}

// takeSlot waits for a slot, of the part of a tenant unless that is empty. It returns false if the operator stops.
func (f *flight) takeSlot(ctx context.Context, tenant string) bool {
	f.walks.working.Add(1)
	end, err := f.walks.quotas.Slot(ctx, tenant)
	if err != nil {
		f.walks.working.Add(-1)
		return false
	}
	f.endSlot = func() {
		end()
		f.endSlot = nil
		f.walks.working.Add(-1)
	}
	return true
}

// Wait runs f, which waits for the stores at places. Meanwhile the walk of ctx has no slot. It returns ErrParked if a
// store has no place for the walk, and f did not run; and ErrInterrupted if f has failed after the object had changed,
// which ends the context of f. Within f, Wait only runs its function.
func Wait(ctx context.Context, places []Place, f func(ctx context.Context) error) error {
	w, ok := ctx.Value(flightKey{}).(*flight)
	if !ok || w.endSlot == nil {
		return f(ctx)
	}
	if w.waits = !w.walks.shares.enter(w.parked, places); w.waits {
		return ErrParked
	}
	defer w.walks.shares.release(w.parked.object, false)
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.interrupted, cancel)()
	w.endSlot()
	err := f(waits)
	w.walks.shares.release(w.parked.object, true) // The store is free for others while the walk waits for a slot.
	tenant := ""
	if len(places) > 0 {
		tenant = places[0].Tenant
	}
	w.takeSlot(ctx, tenant) // If the operator stops, the walk goes on without one, so that it can store what f has made.
	if err != nil && w.interrupted.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// Heavy runs f, which takes a processor for long because a spec asks for it, such as templates. A tenant does one such thing at a time. A walk
// that waits for that keeps its slot, which is of the part of its tenant.
func Heavy[V any](ctx context.Context, tenant string, f func() (V, error)) (V, error) {
	if w, ok := ctx.Value(flightKey{}).(*flight); ok {
		end, err := w.walks.OwnWork(ctx, tenant)
		if err != nil {
			var none V
			return none, err
		}
		defer end()
	}
	return f()
}

// OwnWork is that of the quota of a tenant, for work outside of walks.
func (w *Walks) OwnWork(ctx context.Context, tenant string) (end func(), err error) {
	return w.quotas.Work(ctx, tenant)
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
		end() // AfterFunc would not wait for it.
		return last, cancel
	}
	undo := context.AfterFunc(ctx, end)
	return last, func() { undo(); cancel() }
}
