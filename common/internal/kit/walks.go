package kit

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

var (
	// ErrParked ends a walk whose store has no place for it. The object is queued again when a place is free.
	ErrParked = errors.New("the store serves as many objects as it is allowed to at the same time")
	// ErrInterrupted ends a walk whose object has changed. The object is queued again.
	ErrInterrupted = errors.New("the object has changed while the operator waited for a store")
)

// Limits of the walks of a process.
type Limits struct {
	// Slots is the maximum number of walks that work at the same time. A walk that waits for a store does not count. Of
	// those that go on after they have waited, one namespace can have a quarter. Default 64.
	Slots int
	// InFlight is the maximum number of walks that have begun and not ended. One store can have an eighth of them, the
	// stores that one namespace uses a quarter. Default 1024.
	InFlight int
}

// Walks bound the walks of all controllers of a process.
type Walks struct {
	Limits
	// Stopping reports whether the operator was told to stop. Otherwise the end of its context means that it has lost the
	// lead. Default: it was told to.
	Stopping func() bool

	slots  *slots
	shares shares
	// places has an element for each walk in flight.
	places  chan struct{}
	running sync.WaitGroup
	// lost is true once the operator has lost the lead.
	lost atomic.Bool
	// working counts the walks that have a slot or wait for one.
	working atomic.Int64

	// made counts the controllers, and moments the moments.
	made, moments atomic.Int64

	mu sync.Mutex
	// stopped is true once no walk may begin any longer.
	stopped bool
	// started are the controllers that have a queue.
	started []interface {
		queued() int
		oldest(source any) int64
	}
}

// NewWalks returns Walks with limits.
func NewWalks(l Limits) *Walks {
	l.Slots, l.InFlight = cmp.Or(l.Slots, 64), cmp.Or(l.InFlight, 1024)
	return &Walks{
		Limits: l, Stopping: func() bool { return true },
		slots:  newSlots(l.Slots, max(1, l.Slots/4)),
		shares: shares{store: max(1, l.InFlight/8), tenant: max(1, l.InFlight/4), open: map[any]*share{}},
		places: make(chan struct{}, l.InFlight),
	}
}

// Start implements manager.Runnable. It returns when all walks have ended after ctx did, so that none writes after
// the manager has released the Lease.
func (w *Walks) Start(ctx context.Context) error {
	<-ctx.Done()
	w.lost.Store(!w.Stopping())
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.running.Wait()
	return nil
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

// enter waits until a walk can begin, with a place and a slot. It returns false if ctx has ended.
func (w *Walks) enter(ctx context.Context, priority int) bool {
	select {
	case w.places <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	w.working.Add(1)
	if w.slots.take(ctx, "", priority) {
		if w.begin() {
			return true
		}
		w.slots.give("")
	}
	w.working.Add(-1)
	<-w.places
	return false
}

// begin counts a walk that Start joins. It returns false if the operator has stopped.
func (w *Walks) begin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.running.Add(1)
	}
	return !w.stopped
}

func (w *Walks) release(f *flight) {
	defer w.running.Done()
	if f.slot {
		w.working.Add(-1)
		w.slots.give(f.tenant)
	}
	<-w.places
}
