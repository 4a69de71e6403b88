package referrers

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// releaseEvery is the interval at which objects are enqueued when their store becomes ready: the first at once, then
// fifty a second.
const releaseEvery = time.Second / 50

// A Waker enqueues the objects of a store that has changed.
type Waker struct {
	*Referrers
	// Concerned reports whether the controller has a role for an object.
	Concerned func(es *v1alpha1.ExternalSecret) bool
	// Waits reports whether such an object might be waiting for its store.
	Waits func(ctx context.Context, es *v1alpha1.ExternalSecret) bool
	// Free ends the back-off of an object.
	Free func(key types.NamespacedName)
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Sources returns the sources of events: changes of stores, of the labels of namespaces that cluster stores can
// admit, and of credentials in the namespaces of objects. A namespaced operator is not allowed to read cluster Kinds.
func (w *Waker) Sources(c cache.Cache, bus *refresh.Bus, namespaced bool) []source.Source {
	sources := []source.Source{bus.Source(func(e refresh.Event) bool { return e.Namespace != "" }, w.refresh)}
	cluster := false
	for _, k := range w.Kinds {
		if k.Cluster && namespaced {
			continue // Its informer would never sync.
		}
		cluster = cluster || k.Cluster
		sources = append(sources, source.Kind[client.Object](c, k.New(), w.storeEvents(k)))
	}
	if cluster {
		sources = append(sources, source.Kind[client.Object](c, resolve.NamespaceMetadata(), w.namespaceEvents()))
	}
	return sources
}

// refresh enqueues the waiting objects of a namespace whose credentials for a store have changed.
func (w *Waker) refresh(ctx context.Context, e refresh.Event, q requests) {
	for _, k := range w.Kinds {
		if k.GoName() == e.Kind.GoName() {
			w.release(ctx, k, e.Store, q, func(es *v1alpha1.ExternalSecret) bool { return es.Namespace == e.Namespace })
		}
	}
}

// storeEvents enqueues the objects of a store when it becomes ready or has changed: those that are not in sync, new
// ones first.
func (w *Waker) storeEvents(k resolve.Route) handler.EventHandler {
	everyone := func(*v1alpha1.ExternalSecret) bool { return true }
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) {
			if !e.IsInInitialList {
				w.release(ctx, k, client.ObjectKeyFromObject(e.Object), q, everyone)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) {
			was, ok := e.ObjectOld.(provider.Object)
			is, ok2 := e.ObjectNew.(provider.Object)
			if !ok || !ok2 {
				return
			}
			changed := was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID()
			if changed || (resolve.Held(was) != nil && resolve.Held(is) == nil) {
				w.release(ctx, k, client.ObjectKeyFromObject(is), q, everyone)
			}
			if changed && k.Cluster {
				w.recheck(ctx, k, client.ObjectKeyFromObject(is), q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { w.Forget(e.Object.GetUID()) },
	}
}

// recheck enqueues the objects that are in sync, so that they check whether the store still admits them.
func (w *Waker) recheck(ctx context.Context, k resolve.Route, s types.NamespacedName, q requests) {
	for i, es := range w.of(ctx, k, s) {
		if w.Concerned(es) && meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) {
			queue.AddTo(q, queue.Low, time.Duration(i)*time.Millisecond, request(es))
		}
	}
}

// release enqueues those objects of a store that wait for it and match the predicate, new ones first.
func (w *Waker) release(ctx context.Context, k resolve.Route, s types.NamespacedName, q requests, which func(*v1alpha1.ExternalSecret) bool) {
	waiting := slices.DeleteFunc(w.of(ctx, k, s), func(es *v1alpha1.ExternalSecret) bool {
		return !which(es) || !w.Concerned(es) || !w.Waits(ctx, es)
	})
	slices.SortStableFunc(waiting, func(a, b *v1alpha1.ExternalSecret) int { return rank(a) - rank(b) })
	for i, es := range waiting {
		w.Free(client.ObjectKeyFromObject(es))
		queue.AddTo(q, queue.High-rank(es), time.Duration(i)*releaseEvery, request(es))
	}
}

// rank orders the objects to enqueue: new ones before those that were in sync once.
func rank(es *v1alpha1.ExternalSecret) int {
	if es.Status.RefreshTime == nil {
		return 0
	}
	return 1
}

// namespaceEvents enqueues the objects of a namespace when its labels change, so that they check whether their
// cluster stores still admit it.
func (w *Waker) namespaceEvents() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) {
			if maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				return
			}
			var list v1alpha1.ExternalSecretList
			if err := w.cache.List(ctx, &list, client.InNamespace(e.ObjectNew.GetName())); err != nil {
				return // List fails only if the cache is shutting down.
			}
			for i := range list.Items {
				if es := &list.Items[i]; w.Concerned(es) && w.usesCluster(es) {
					queue.AddTo(q, queue.High, 0, request(es))
				}
			}
		},
	}
}

func request(es *v1alpha1.ExternalSecret) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(es)}
}
