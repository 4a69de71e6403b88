package kit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/recovery"
)

// A Controller runs the walks over one kind of objects, which a T identifies.
type Controller[T comparable] struct {
	walks *Walks
	walk  func(ctx context.Context, req T) (reconcile.Result, error)
	queue atomic.Pointer[queue.Queue[T]]

	mu sync.Mutex
	// Bound: one per walk in flight.
	flights map[T]*flight
	// notified are the objects of Notify over which no later walk has come to a result, by source.
	// Bound: one per source of events and object.
	notified map[any]map[T]notes
}

// NewController returns a Controller whose walks are bounded by walks.
func NewController[T comparable](walks *Walks, walk func(ctx context.Context, req T) (reconcile.Result, error)) *Controller[T] {
	walks.made.Add(1)
	return &Controller[T]{walks: walks, walk: walk, flights: map[T]*flight{}, notified: map[any]map[T]notes{}}
}

// Options returns the options with which controller-runtime runs the Controller.
func (c *Controller[T]) Options(l workqueue.TypedRateLimiter[T], log func(*T) logr.Logger) controller.TypedOptions[T] {
	return controller.TypedOptions[T]{Reconciler: c, NewQueue: c.NewQueue, RateLimiter: l, LogConstructor: log}
}

// NewQueue creates the queue. It has the signature of an option of controller-runtime.
func (c *Controller[T]) NewQueue(name string, l workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	q := queue.New(name, l)
	c.queue.Store(q)
	c.walks.mu.Lock()
	defer c.walks.mu.Unlock()
	c.walks.started = append(c.walks.started, c)
	return patient[T]{q}
}

// patient is the queue that controller-runtime uses. To controller-runtime, each walk succeeds at once. Only its end makes an end of the
// object's back-off, and of the time in which no other worker may have the object.
type patient[T comparable] struct{ *queue.Queue[T] }

// Forget implements workqueue.TypedRateLimitingInterface.
func (patient[T]) Forget(T) {}

// Done implements workqueue.TypedInterface.
func (patient[T]) Done(T) {}

// Enqueue adds an object to the queue.
func (c *Controller[T]) Enqueue(req T, priority int) { c.EnqueueAfter(req, priority, 0) }

// EnqueueAfter adds an object to the queue after a delay.
func (c *Controller[T]) EnqueueAfter(req T, priority int, delay time.Duration) {
	if q := c.queue.Load(); q != nil { // A controller that starts takes all objects.
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: delay}, req)
	}
}

// Interrupt ends the wait for a store in the walk over an object that has changed or was deleted. The caller queues
// the object.
func (c *Controller[T]) Interrupt(req T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[req]; f != nil {
		f.interrupt()
	}
}

// Reconcile begins a walk, and does not wait for its end.
func (c *Controller[T]) Reconcile(ctx context.Context, req T) (reconcile.Result, error) {
	q := c.queue.Load()
	priority := q.Priority(req)
	if c.walks.places.Acquire(ctx, 1) != nil {
		return reconcile.Result{}, nil // The operator stops.
	}
	f := c.begin(ctx, req, priority)
	q.Begun(req)
	go func() {
		defer c.walks.places.Release(1)
		defer q.Done(req)
		res, err := c.run(ctx, req, f)
		if res.Priority != nil {
			priority = *res.Priority
		}
		again := priorityqueue.AddOpts{Priority: &priority, RateLimited: err != nil}
		if err != nil {
			log.FromContext(ctx).Error(err, "Reconciler error")
		} else {
			q.Forget(req)
			again.After = res.RequeueAfter
		}
		if err != nil || again.After > 0 {
			q.AddWithOpts(again, req)
		}
	}()
	return reconcile.Result{}, nil
}

// Walk makes a walk over an object that is in no queue.
func (c *Controller[T]) Walk(ctx context.Context, req T) (reconcile.Result, error) {
	return c.run(ctx, req, c.begin(ctx, req, queue.High))
}

// objectID identifies an object among those of all controllers.
type objectID[T comparable] struct {
	c   *Controller[T]
	req T
}

// begin registers a walk, and waits for a slot.
func (c *Controller[T]) begin(ctx context.Context, req T, priority int) *flight {
	f := &flight{walks: c.walks, parked: parked{object: objectID[T]{c, req}, priority: priority, queue: func() { c.Enqueue(req, priority) }}}
	f.interrupted, f.interrupt = context.WithCancel(context.Background())
	c.mu.Lock()
	c.flights[req] = f
	c.mu.Unlock()
	f.takeSlot(ctx, "")
	f.began, f.at = c.walks.Moment(), time.Now()
	return f
}

// run makes a walk that has begun. It hides errors that are none.
func (c *Controller[T]) run(ctx context.Context, req T, f *flight) (reconcile.Result, error) {
	defer func() {
		c.mu.Lock()
		delete(c.flights, req)
		c.mu.Unlock()
		f.interrupt()
		if f.endSlot != nil {
			f.endSlot()
		}
		if !f.waits {
			c.walks.shares.end(f.parked.object)
		}
	}()
	res, err := c.recovered(context.WithValue(ctx, flightKey{}, f), req)
	switch {
	case ctx.Err() != nil, errors.Is(err, ErrParked):
		return reconcile.Result{}, nil // The operator stops, and no error that this causes is reported, or the object waits.
	case errors.Is(err, ErrInterrupted):
		return queue.Soon(), nil
	case err == nil && !queue.IsSoon(res):
		if planned := c.answered(req, f.began, f.at); !planned.IsZero() {
			c.EnqueueAfter(req, queue.High, max(0, time.Until(planned)))
		}
	}
	return res, err
}

func (c *Controller[T]) recovered(ctx context.Context, req T) (res reconcile.Result, err error) {
	defer recovery.ToError(ctx, &err)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	return c.walk(ctx, req)
}

// Changes returns a handler that queues changed objects, and ends the walks that wait for a store over such an object.
func Changes(interrupt func(reconcile.Request)) handler.EventHandler {
	return &changes{interrupt: interrupt}
}

// Respecified holds for an object with another spec, and for one that was deleted and created again while the watch was broken:
// that is an update with another uid, and perhaps the same generation.
func Respecified() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}}
}

type changes struct {
	handler.EnqueueRequestForObject
	interrupt func(reconcile.Request)
}

// Update implements handler.EventHandler.
func (c *changes) Update(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	c.interrupt(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
	c.EnqueueRequestForObject.Update(ctx, e, q)
}

// Delete implements handler.EventHandler.
func (c *changes) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	c.interrupt(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
	c.EnqueueRequestForObject.Delete(ctx, e, q)
}
