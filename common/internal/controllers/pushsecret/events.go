package pushsecret

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// releaseEvery is the delay between two objects that are requeued when their store becomes ready.
const releaseEvery = time.Second / 50

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

func requestFor(key types.NamespacedName) reconcile.Request {
	return reconcile.Request{NamespacedName: key}
}

// watches turns events into requests.
type watches struct {
	claim

	memory *memory
	cache  cache.Cache
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets,verbs=list;watch
// Namespace labels decide which namespaces a cluster store admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

// start starts the watches of a controller. A namespaced operator does not watch cluster Kinds.
func (w *watches) start(c controller.Controller, namespaced bool) error {
	kind := func(o client.Object, h handler.EventHandler) source.Source { return source.Kind(w.cache, o, h) }
	sources := []source.Source{kind(&v1alpha1.PushSecret{}, w.objectEvents())}
	byLabels := false
	for _, k := range w.routes.Kinds {
		if k.Cluster && namespaced {
			continue // Without permission to list cluster Kinds, the informer would never sync.
		}
		byLabels = byLabels || k.Cluster
		sources = append(sources, kind(k.New(), w.storeEvents(k)))
	}
	if byLabels {
		sources = append(sources, kind(resolve.NamespaceMetadata(), w.namespaceEvents()))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

func (w *watches) objectEvents() handler.Funcs {
	add := func(q requests, priority int, o client.Object) {
		queue.AddTo(q, priority, 0, requestFor(client.ObjectKeyFromObject(o)))
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) {
			ps, ok := e.Object.(*v1alpha1.PushSecret)
			if !ok || !w.concerns(ps) {
				return
			}
			priority := queue.High
			if len(ps.Status.Stores) > 0 && ps.Status.ObservedGeneration == ps.Generation {
				priority = queue.Low
			}
			add(q, priority, ps)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) {
			was, ok := e.ObjectOld.(*v1alpha1.PushSecret)
			is, ok2 := e.ObjectNew.(*v1alpha1.PushSecret)
			if !ok || !ok2 || !w.concerns(is) && !w.concerns(was) {
				return
			}
			if obj := w.memory.Peek(client.ObjectKeyFromObject(is)); obj != nil && !slices.Equal(was.Status.Parts, is.Status.Parts) {
				obj.sources.stale()
				obj.stores.noWait()
				add(q, queue.High, is)
			} else if w.moved(was, is) {
				add(q, queue.High, is)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) { add(q, queue.High, e.Object) },
	}
}

// moved reports whether an object has changed, apart from the fields that this module writes.
func (w *watches) moved(was, is *v1alpha1.PushSecret) bool {
	return was.Generation != is.Generation || was.UID != is.UID || !was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		was.Annotations[v1alpha1.RefreshRequestAnnotation] != is.Annotations[v1alpha1.RefreshRequestAnnotation] ||
		!equality.Semantic.DeepEqual(w.foreign(was), w.foreign(is))
}

// storeEvents requeues objects when a store of theirs becomes ready, changes, is created or is deleted.
func (w *watches) storeEvents(k resolve.Route) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) {
			if !e.IsInInitialList {
				w.release(ctx, q, k, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) {
			was, ok := e.ObjectOld.(provider.Object)
			is, ok2 := e.ObjectNew.(provider.Object)
			if !ok || !ok2 {
				return
			}
			if was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID() ||
				!equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) ||
				resolve.Held(was) != nil && resolve.Held(is) == nil {
				w.release(ctx, q, k, is)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) {
			w.routes.Forget(e.Object.GetUID())
			w.release(ctx, q, k, e.Object)
		},
	}
}

// release requeues the objects that may use a store, with a delay between them to protect the store.
func (w *watches) release(ctx context.Context, q requests, k resolve.Route, s client.Object) {
	w.retry(ctx, q, s.GetNamespace(), releaseEvery, func(ps *v1alpha1.PushSecret) bool {
		return slices.ContainsFunc(ps.Spec.StoreRefs, func(ref v1alpha1.PushStoreRef) bool {
			route, ok := w.route(ref)
			return ok && route.GVK == k.GVK && (ref.LabelSelector != nil || ref.Name == s.GetName())
		})
	})
}

// namespaceEvents requeues the objects of a namespace whose labels changed, because cluster stores may now admit it or
// no longer admit it.
func (w *watches) namespaceEvents() handler.Funcs {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) {
		if !equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
			w.retry(ctx, q, e.ObjectNew.GetName(), 0, w.concerns)
		}
	}}
}

// retry requeues the matching objects of a namespace, or of all namespaces if it is empty, with a delay of pace between
// them. It also resets the back-off of their stores.
func (w *watches) retry(ctx context.Context, q requests, namespace string, pace time.Duration, some func(*v1alpha1.PushSecret) bool) {
	var list v1alpha1.PushSecretList
	if err := w.cache.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return // A cache fails only when it shuts down.
	}
	n := 0
	for i := range list.Items {
		if !some(&list.Items[i]) {
			continue
		}
		key := client.ObjectKeyFromObject(&list.Items[i])
		if obj := w.memory.Peek(key); obj != nil {
			obj.stores.noWait()
		}
		queue.AddTo(q, queue.High, time.Duration(n)*pace, requestFor(key))
		n++
	}
}
