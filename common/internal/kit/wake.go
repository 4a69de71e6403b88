package kit

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// releaseEvery is the delay between two objects that a store wakes: the first goes at once, then fifty a second.
const releaseEvery = time.Second / 50

// A Referrer is an object that refers to a store.
type Referrer[T comparable] struct {
	Object T
	// New is true for an object that was never in sync. It goes before others.
	New bool
	// Waits is true if a change of the store may help the object. Another object only checks whether the store still
	// admits it.
	Waits bool
}

// Wake queues the objects of one controller when something that they wait for has changed: a store, the labels of a
// namespace, or the credentials of a namespace for a store.
type Wake[T comparable] struct {
	Resolver *resolve.Resolver
	// Namespaced is true for an operator that is not allowed to read cluster Kinds.
	Namespaced bool
	// Referrers returns the objects that refer to a store, or with an empty name to any store of the Kind: in one
	// namespace, or in all if it is empty. For a namespaced Kind it is the namespace of the store.
	Referrers func(ctx context.Context, k resolve.Route, store types.NamespacedName, namespace string) []Referrer[T]
	// Free ends the back-off of an object.
	Free func(object T)
	// Notify notifies the objects that read or push remote secrets, from stores of a Kind, if a change of them may be new. Nil if the
	// controller reads no remote secrets.
	Notify func(ctx context.Context, k resolve.Route, c *refresh.Change)
	// Enqueue adds an object to the queue of the controller.
	Enqueue func(object T, priority int, after time.Duration)
}

// Sources returns the sources of the events.
func (w *Wake[T]) Sources(c cache.Cache, bus *refresh.Bus) []source.TypedSource[T] {
	refresh.On(bus, w.credentials)
	if w.Notify != nil {
		refresh.On(bus, w.changed)
	}
	var sources []source.TypedSource[T]
	cluster := false
	for _, k := range w.Resolver.Kinds {
		if k.Cluster && w.Namespaced {
			continue // Its informer would never sync.
		}
		cluster = cluster || k.Cluster
		sources = append(sources, source.TypedKind[client.Object](c, k.New(), w.stores(k)))
	}
	if cluster {
		sources = append(sources, source.TypedKind[client.Object](c, resolve.NamespaceMetadata(), w.namespaces()))
	}
	return sources
}

// credentials wakes the objects of a namespace whose credentials for a store have changed.
func (w *Wake[T]) credentials(ctx context.Context, e refresh.Event) {
	for _, k := range w.Resolver.Kinds {
		if e.Namespace != "" && k.GoName() == e.Kind.GoName() {
			w.release(ctx, k, e.Store, e.Namespace)
		}
	}
}

// changed notifies the objects that read or push remote secrets that have changed.
func (w *Wake[T]) changed(ctx context.Context, c *refresh.Change) {
	for _, k := range w.Resolver.Kinds {
		if k.GoName() == c.Kind.GoName() {
			w.Notify(ctx, k, c)
		}
	}
}

// stores wakes the objects of a store that is created, deleted, changed or ready again.
func (w *Wake[T]) stores(k resolve.Route) handler.TypedEventHandler[client.Object, T] {
	return handler.TypedFuncs[client.Object, T]{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ workqueue.TypedRateLimitingInterface[T]) {
			if !e.IsInInitialList {
				w.release(ctx, k, client.ObjectKeyFromObject(e.Object), "")
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[T]) {
			was, ok := e.ObjectOld.(provider.Object)
			is, ok2 := e.ObjectNew.(provider.Object)
			if !ok || !ok2 {
				return
			}
			changed := was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID() || !maps.Equal(was.GetLabels(), is.GetLabels())
			if changed || resolve.Held(was) != nil && resolve.Held(is) == nil {
				w.release(ctx, k, client.ObjectKeyFromObject(is), "")
			}
			if changed && k.Cluster {
				w.recheck(ctx, k, client.ObjectKeyFromObject(is))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[T]) {
			w.Resolver.Forget(e.Object.GetUID())
			w.release(ctx, k, client.ObjectKeyFromObject(e.Object), "")
		},
	}
}

// release queues the objects that wait for a store, new ones first, with a delay between them to protect the store.
func (w *Wake[T]) release(ctx context.Context, k resolve.Route, store types.NamespacedName, namespace string) {
	all := slices.DeleteFunc(w.of(ctx, k, store, namespace), func(r Referrer[T]) bool { return !r.Waits })
	slices.SortStableFunc(all, func(a, b Referrer[T]) int { return a.rank() - b.rank() })
	for i, r := range all {
		w.Free(r.Object)
		w.Enqueue(r.Object, queue.High-r.rank(), time.Duration(i)*releaseEvery)
	}
}

// of returns the objects that refer to a store, in one namespace if it is not empty.
func (w *Wake[T]) of(ctx context.Context, k resolve.Route, store types.NamespacedName, namespace string) []Referrer[T] {
	if !k.Cluster {
		namespace = store.Namespace
	}
	return w.Referrers(ctx, k, store, namespace)
}

func (r Referrer[T]) rank() int {
	if r.New {
		return 0
	}
	return 1
}

// recheck queues the objects that are in sync, so that they check whether the store still admits them.
func (w *Wake[T]) recheck(ctx context.Context, k resolve.Route, store types.NamespacedName) {
	for i, r := range w.of(ctx, k, store, "") {
		if !r.Waits {
			w.Enqueue(r.Object, queue.Low, time.Duration(i)*time.Millisecond)
		}
	}
}

// namespaces queues the objects of a namespace whose labels have changed, so that they check whether their cluster stores
// admit it.
func (w *Wake[T]) namespaces() handler.TypedEventHandler[client.Object, T] {
	return handler.TypedFuncs[client.Object, T]{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[T]) {
			if maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				return
			}
			for _, k := range w.Resolver.Kinds {
				if !k.Cluster {
					continue
				}
				for _, r := range w.of(ctx, k, types.NamespacedName{}, e.ObjectNew.GetName()) {
					if r.Waits { // An object in sync reads no provider for this.
						w.Free(r.Object)
					}
					w.Enqueue(r.Object, queue.High, 0)
				}
			}
		},
	}
}
