package kit

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/recovery"
)

// A Controller runs the walks over one kind of objects, which a T identifies. At most one walk at a time is over the
// same object.
type Controller[T comparable] struct {
	walks *Walks
	walk  func(ctx context.Context, req T) (reconcile.Result, error)
	queue *queue.Queue[T]

	mu   sync.Mutex
	busy map[T]*flight
	// notified are the objects of Notify over which no later walk has come to a result, by source.
	notified map[any]map[T]notes
}

// NewController returns a Controller whose walks are bounded by walks.
func NewController[T comparable](walks *Walks, walk func(ctx context.Context, req T) (reconcile.Result, error)) *Controller[T] {
	walks.made.Add(1)
	return &Controller[T]{walks: walks, walk: walk, busy: map[T]*flight{}, notified: map[any]map[T]notes{}}
}

// NewQueue creates the queue. It has the signature of an option of controller-runtime.
func (c *Controller[T]) NewQueue(name string, l workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	c.queue = queue.New(name, l)
	c.walks.mu.Lock()
	defer c.walks.mu.Unlock()
	c.walks.started = append(c.walks.started, c)
	return patient[T]{c.queue}
}

// patient is the queue that controller-runtime uses. To controller-runtime, each walk succeeds at once, so it ends the back-off
// of the object. Only the end of the walk does that.
type patient[T comparable] struct{ *queue.Queue[T] }

// Forget implements workqueue.TypedRateLimitingInterface.
func (patient[T]) Forget(T) {}

// Enqueue adds an object to the queue.
func (c *Controller[T]) Enqueue(req T, priority int) { c.EnqueueAfter(req, priority, 0) }

// EnqueueAfter adds an object to the queue after a delay.
func (c *Controller[T]) EnqueueAfter(req T, priority int, delay time.Duration) {
	c.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: delay}, req)
}

// Crowded reports whether only the share of its own tenant holds an object back.
func (c *Controller[T]) Crowded(req T, tenant string) bool {
	return c.walks.shares.crowded(objectID[T]{c, req}, tenant)
}

// Interrupt ends the wait for a store in the walk over an object that has changed or was deleted. The caller queues
// the object.
func (c *Controller[T]) Interrupt(req T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.busy[req]; f != nil {
		f.interrupt()
	}
}

// Reconcile begins a walk, and does not wait for its end. An object with a walk in flight is queued again at the end
// of that walk.
func (c *Controller[T]) Reconcile(ctx context.Context, req T) (reconcile.Result, error) {
	priority := c.queue.Priority(req)
	f := c.begin(ctx, req, priority)
	if f == nil {
		return reconcile.Result{}, nil
	}
	if !c.walks.enter(ctx, priority) {
		c.end(req)
		return reconcile.Result{}, nil // The operator stops.
	}
	c.queue.Begun(req)
	go func() {
		res, err := c.do(f, req)
		c.walks.release(f)
		c.walks.shares.end(f.parked.objectID)
		again := c.end(req)
		if err == nil && !f.unfinished && f.ctx.Err() == nil && !queue.IsSoon(res) {
			if planned := c.answered(req, f.began, f.at); !planned.IsZero() {
				c.EnqueueAfter(req, queue.High, max(0, time.Until(planned)))
			}
		}
		c.requeue(f.ctx, req, priority, res, err)
		if again != nil {
			c.Enqueue(req, *again)
		}
	}()
	return reconcile.Result{}, nil
}

// Walk is Reconcile for a caller that waits for the result, and has no queue.
func (c *Controller[T]) Walk(ctx context.Context, req T) (reconcile.Result, error) {
	f := c.begin(ctx, req, queue.High)
	if f == nil {
		return reconcile.Result{}, nil
	}
	defer c.end(req)
	if !c.walks.enter(ctx, queue.High) {
		return reconcile.Result{}, nil
	}
	defer func() { c.walks.release(f) }()
	return c.do(f, req)
}

// begin registers a walk; nil if the object has one already.
func (c *Controller[T]) begin(ctx context.Context, req T, priority int) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.busy[req]; f != nil {
		if f.again == nil || *f.again < priority {
			f.again = &priority
		}
		return nil
	}
	f := &flight{walks: c.walks, priority: priority, slot: true}
	f.parked = parked{objectID: objectID[T]{c, req}, priority: priority, queue: func() { c.Enqueue(req, priority) }}
	f.interrupted, f.interrupt = context.WithCancel(context.Background())
	f.ctx = context.WithValue(ctx, flightKey{}, f)
	f.began, f.at = c.walks.Moment(), time.Now()
	c.busy[req] = f
	return f
}

// objectID identifies an object among those of all controllers.
type objectID[T comparable] struct {
	c   *Controller[T]
	req T
}

// end removes a walk, and returns the priority with which its object is queued again; nil if it is not.
func (c *Controller[T]) end(req T) (again *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.busy[req]
	delete(c.busy, req)
	f.interrupt()
	return f.again
}

// do walks, and hides errors that are none.
func (c *Controller[T]) do(f *flight, req T) (res reconcile.Result, err error) {
	defer func() {
		switch {
		case f.ctx.Err() != nil: // The operator stops. An error that this causes is not reported.
			res, err = reconcile.Result{}, nil
		case errors.Is(err, ErrParked):
			f.unfinished = true
			res, err = reconcile.Result{}, nil
		case errors.Is(err, ErrInterrupted):
			res, err = queue.Soon(), nil
		}
	}()
	defer recovery.ToError(f.ctx, &err)
	if f.ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	return c.walk(f.ctx, req)
}

// requeue does with a result what controller-runtime does.
func (c *Controller[T]) requeue(ctx context.Context, req T, priority int, res reconcile.Result, err error) {
	if res.Priority != nil {
		priority = *res.Priority
	}
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "Reconciler error")
		c.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: &priority}, req)
	case res.RequeueAfter > 0:
		c.queue.Forget(req)
		c.queue.AddWithOpts(priorityqueue.AddOpts{After: res.RequeueAfter, Priority: &priority}, req)
	default:
		c.queue.Forget(req)
	}
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
