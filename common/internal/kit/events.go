package kit

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// An Event is a change of an object.
type Event struct {
	// Was is the object before the change, nil if it was created. Is is the object after it, nil if it was deleted.
	Was, Is client.Object
	// Initial is true for an object that existed when the operator started.
	Initial bool
}

// Object returns the object, as it is or last was.
func (e Event) Object() client.Object {
	if e.Is == nil {
		return e.Was
	}
	return e.Is
}

// OnEvent returns a handler that calls f for each event. add queues a request after a delay, with high priority.
func OnEvent[T comparable](f func(ctx context.Context, e Event, add func(req T, after time.Duration))) handler.TypedEventHandler[client.Object, T] {
	type queued = workqueue.TypedRateLimitingInterface[T]
	call := func(ctx context.Context, e Event, q queued) {
		f(ctx, e, func(req T, after time.Duration) { queue.AddTo(q, queue.High, after, req) })
	}
	return handler.TypedFuncs[client.Object, T]{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queued) {
			call(ctx, Event{Is: e.Object, Initial: e.IsInInitialList}, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queued) {
			call(ctx, Event{Was: e.ObjectOld, Is: e.ObjectNew}, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queued) { call(ctx, Event{Was: e.Object}, q) },
	}
}

// Items returns the objects of a list. They are not copied.
func Items(list client.ObjectList) []client.Object {
	var items []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error { // The function returns no error.
		if item, ok := o.(client.Object); ok {
			items = append(items, item)
		}
		return nil
	})
	return items
}
