package kit

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
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

// Stores returns the stores or generators of a Kind in a cache: those of one namespace if it is not empty. They are not copied.
func Stores(ctx context.Context, cache client.Reader, scheme *runtime.Scheme, k resolve.Route, namespace string, opts ...client.ListOption) (stores []provider.Object, err error) {
	made, err := scheme.New(k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List"))
	if err != nil {
		return nil, err
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		return nil, errors.Errorf("%T is no list", made)
	}
	if !k.Cluster {
		opts = append(opts, client.InNamespace(namespace))
	}
	if err := cache.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	for _, o := range Items(list) {
		if s, ok := o.(provider.Object); ok {
			stores = append(stores, s)
		}
	}
	return stores, nil
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
