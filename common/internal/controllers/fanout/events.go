package fanout

import (
	"context"
	"maps"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

type (
	requests    = workqueue.TypedRateLimitingInterface[request]
	eventFuncs  = handler.TypedFuncs[client.Object, request]
	createEvent = event.TypedCreateEvent[client.Object]
	updateEvent = event.TypedUpdateEvent[client.Object]
	deleteEvent = event.TypedDeleteEvent[client.Object]
)

// watches turn events into requests.
type watches struct {
	kinds

	cache   cache.Cache
	duties  Duties
	board   *board
	parents *parents
}

// start starts the watches of a controller.
func (w *watches) start(c controller.TypedController[request]) error {
	kind := func(o client.Object, h eventFuncs) source.TypedSource[request] {
		return source.TypedKind(w.cache, o, h)
	}
	for _, s := range []source.TypedSource[request]{
		kind(w.newParent(), w.parentEvents()),
		kind(w.newChild(), w.childEvents()),
		kind(resolve.NamespaceMetadata(), w.namespaceEvents()),
		source.TypedFunc[request](func(_ context.Context, q requests) error {
			all := func() { queue.AddTo(q, queue.High, 0, aboutAll()) }
			w.duties.OnHeld(all) // Another holder of the duties may have changed anything.
			all()                // The duties may already be held.
			return nil
		}),
	} {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

func (w *watches) parentEvents() eventFuncs {
	enqueue := func(q requests, o client.Object, after time.Duration) {
		queue.AddTo(q, queue.High, after, aboutParent(o.GetName()))
	}
	return eventFuncs{
		CreateFunc: func(_ context.Context, e createEvent, q requests) { enqueue(q, e.Object, 0) },
		UpdateFunc: func(_ context.Context, e updateEvent, q requests) {
			if moved(e.ObjectOld, e.ObjectNew) {
				enqueue(q, e.ObjectNew, 0)
				return
			}
			enqueue(q, e.ObjectNew, statusDelay) // Check the status again, also if another operator wrote it at the same time.
		},
		DeleteFunc: func(_ context.Context, e deleteEvent, q requests) { enqueue(q, e.Object, 0) },
	}
}

// childEvents enqueue the parent of a changed child, and the parents that wait for a change in its namespace.
func (w *watches) childEvents() eventFuncs {
	enqueue := func(q requests, o client.Object) {
		if ref := w.parentOf(o); ref != nil {
			queue.AddTo(q, queue.High, 0, aboutNamespace(ref.Name, o.GetNamespace()))
		}
	}
	waiting := func(q requests, o client.Object) {
		for _, parent := range w.board.refused(o.GetNamespace()) {
			queue.AddTo(q, queue.High, 0, aboutNamespace(parent, o.GetNamespace()))
		}
	}
	return eventFuncs{
		CreateFunc: func(_ context.Context, e createEvent, q requests) {
			if !e.IsInInitialList { // The pass over each parent covers them.
				enqueue(q, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e updateEvent, q requests) {
			was, is := w.parentOf(e.ObjectOld), w.parentOf(e.ObjectNew)
			if w.ready(e.ObjectNew) && !w.ready(e.ObjectOld) {
				waiting(q, e.ObjectNew) // It may replace another child.
			}
			if is != nil && was != nil && is.UID == was.UID && !moved(e.ObjectOld, e.ObjectNew) {
				return
			}
			enqueue(q, e.ObjectOld)
			enqueue(q, e.ObjectNew)
			if was != nil && is == nil || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				waiting(q, e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e deleteEvent, q requests) {
			enqueue(q, e.Object)
			waiting(q, e.Object)
		},
	}
}

// namespaceEvents enqueue a namespace for every parent, before periodic retries.
func (w *watches) namespaceEvents() eventFuncs {
	enqueue := func(ctx context.Context, q requests, o client.Object) {
		for _, parent := range w.parents.names(ctx) {
			queue.AddTo(q, queue.High, 0, aboutNamespace(parent, o.GetName()))
		}
	}
	return eventFuncs{
		CreateFunc: func(ctx context.Context, e createEvent, q requests) {
			if !e.IsInInitialList {
				enqueue(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e updateEvent, q requests) {
			if moved(e.ObjectOld, e.ObjectNew) {
				enqueue(ctx, q, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e deleteEvent, q requests) { enqueue(ctx, q, e.Object) },
	}
}

// moved reports whether more than the status of an object has changed.
func moved(was, is client.Object) bool {
	return was.GetUID() != is.GetUID() || was.GetGeneration() != is.GetGeneration() || !maps.Equal(was.GetLabels(), is.GetLabels()) ||
		!maps.Equal(was.GetAnnotations(), is.GetAnnotations()) || was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero()
}
