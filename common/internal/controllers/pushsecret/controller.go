package pushsecret

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// releaseEvery is the pace at which objects are let go when their store becomes ready.
const releaseEvery = time.Second / 50

// Options are those that all controllers share.
type Options = setup.Options

// Setup adds the loop to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, watches *watch.Watches, o Options) error {
	routes, err := resolve.NewResolver(mgr.GetCache(), mgr.GetScheme(), o.Kinds, o.ControllerClass, o.Namespaced)
	if err != nil {
		return errors.Wrap(err, "cannot route store Kinds")
	}
	ledger, err := metrics.New(mgr, "PushSecret", metrics.WithClock(o.Now), metrics.Following(&v1alpha1.PushSecret{}))
	if err != nil {
		return errors.Wrap(err, "cannot add the ledger")
	}
	r := &Reconciler{
		client: live, cache: mgr.GetCache(), events: mgr.GetEventRecorder("direct-secrets"), log: mgr.GetLogger(),
		pool: pool, watches: watches, routes: routes, opts: o,
		objects: map[types.NamespacedName]*object{}, ledger: ledger,
	}
	var q *queue.Queue[reconcile.Request]
	c, err := controller.New("pushsecret", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: max(1, o.Concurrency/4), // It never waits for a provider.
		RateLimiter:             ratelimiter.NewController(),
		NewQueue: func(name string, l workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			q = queue.New(name, l)
			return q
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot make the controller")
	}
	r.enqueueAfter = func(key types.NamespacedName, priority int, after time.Duration) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, reconcile.Request{NamespacedName: key})
	}
	return r.watch(c, mgr)
}

func (r *Reconciler) enqueue(key types.NamespacedName, priority int) {
	r.enqueueAfter(key, priority, 0)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=pushsecrets,verbs=list;watch
// Labels of namespaces say which of them a cluster store admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

func (r *Reconciler) watch(c controller.Controller, mgr manager.Manager) error {
	sources := []source.Source{source.Kind[client.Object](mgr.GetCache(), &v1alpha1.PushSecret{}, r.objectEvents())}
	byLabels := false
	for _, k := range r.routes.Kinds {
		if k.Cluster && r.opts.Namespaced {
			continue // Its informer would never sync.
		}
		byLabels = byLabels || k.Cluster
		sources = append(sources, source.Kind[client.Object](mgr.GetCache(), k.New(), r.storeEvents(k)))
	}
	if byLabels {
		sources = append(sources, source.Kind[client.Object](mgr.GetCache(), resolve.NamespaceMetadata(), r.namespaceEvents()))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *Reconciler) objectEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) {
			ps, ok := e.Object.(*v1alpha1.PushSecret)
			if !ok || !r.concerns(ps) {
				return
			}
			priority := queue.High
			if len(ps.Status.Stores) > 0 && ps.Status.ObservedGeneration == ps.Generation {
				priority = queue.Low
			}
			r.enqueue(client.ObjectKeyFromObject(ps), priority)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) {
			was, ok := e.ObjectOld.(*v1alpha1.PushSecret)
			ps, ok2 := e.ObjectNew.(*v1alpha1.PushSecret)
			if !ok || !ok2 || !r.concerns(ps) && !r.concerns(was) {
				return
			}
			if obj := r.peek(client.ObjectKeyFromObject(ps)); obj != nil && !slices.Equal(was.Status.Parts, ps.Status.Parts) {
				obj.stale()
				obj.noWait()
				r.enqueue(client.ObjectKeyFromObject(ps), queue.High)
				return
			}
			if was.Generation == ps.Generation && was.UID == ps.UID && was.DeletionTimestamp.Equal(ps.DeletionTimestamp) &&
				was.Annotations[v1alpha1.RefreshRequestAnnotation] == ps.Annotations[v1alpha1.RefreshRequestAnnotation] &&
				equality.Semantic.DeepEqual(r.foreign(was), r.foreign(ps)) {
				return // Only our own status moved.
			}
			r.enqueue(client.ObjectKeyFromObject(ps), queue.High)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) {
			r.enqueue(client.ObjectKeyFromObject(e.Object), queue.High)
		},
	}
}

// storeEvents brings objects back when a store of theirs becomes ready, changes, comes or goes.
func (r *Reconciler) storeEvents(k resolve.Route) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ requests) {
			if !e.IsInInitialList {
				r.release(ctx, k, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ requests) {
			was, ok := e.ObjectOld.(provider.Object)
			is, ok2 := e.ObjectNew.(provider.Object)
			if !ok || !ok2 {
				return
			}
			if was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID() ||
				!equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) ||
				resolve.Held(was) != nil && resolve.Held(is) == nil {
				r.release(ctx, k, is)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ requests) {
			r.routes.Forget(e.Object.GetUID())
			r.release(ctx, k, e.Object)
		},
	}
}

// release brings the objects back that may use a store, at a pace that the store bears.
func (r *Reconciler) release(ctx context.Context, k resolve.Route, s client.Object) {
	var list v1alpha1.PushSecretList
	if err := r.cache.List(ctx, &list, client.InNamespace(s.GetNamespace())); err != nil {
		return // Only a cache that is shutting down fails.
	}
	n := 0
	for i := range list.Items {
		ps := &list.Items[i]
		if !slices.ContainsFunc(ps.Spec.StoreRefs, func(ref v1alpha1.PushStoreRef) bool {
			route, ok := r.routes.Serves(kindOf(ref))
			return ok && route.GVK == k.GVK && (ref.LabelSelector != nil || ref.Name == s.GetName())
		}) {
			continue
		}
		key := client.ObjectKeyFromObject(ps)
		if obj := r.peek(key); obj != nil {
			obj.noWait()
		}
		r.enqueueAfter(key, queue.High, time.Duration(n)*releaseEvery)
		n++
	}
}

// namespaceEvents has the objects of a namespace look again at whether their cluster stores admit it.
func (r *Reconciler) namespaceEvents() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ requests) {
		if equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
			return
		}
		var list v1alpha1.PushSecretList
		if err := r.cache.List(ctx, &list, client.InNamespace(e.ObjectNew.GetName())); err != nil {
			return // Only a cache that is shutting down fails.
		}
		for i := range list.Items {
			if r.concerns(&list.Items[i]) {
				key := client.ObjectKeyFromObject(&list.Items[i])
				if obj := r.peek(key); obj != nil {
					obj.noWait()
				}
				r.enqueue(key, queue.High)
			}
		}
	}}
}

// kindOf is the reference to a Kind, whatever the store.
func kindOf(ref v1alpha1.PushStoreRef) *v1alpha1.StoreRef {
	return &v1alpha1.StoreRef{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}
}

// serves reports whether this module writes to any store of an object.
func (r *Reconciler) serves(ps *v1alpha1.PushSecret) bool {
	return slices.ContainsFunc(ps.Spec.StoreRefs, func(ref v1alpha1.PushStoreRef) bool {
		_, ok := r.routes.Serves(kindOf(ref))
		return ok
	})
}

// leads reports whether this module writes the Ready condition: it serves the first store.
func (r *Reconciler) leads(ps *v1alpha1.PushSecret) bool {
	if len(ps.Spec.StoreRefs) == 0 {
		return false
	}
	_, ok := r.routes.Serves(kindOf(ps.Spec.StoreRefs[0]))
	return ok
}

// concerns reports whether this module has anything to do with an object, or had.
func (r *Reconciler) concerns(ps *v1alpha1.PushSecret) bool {
	return r.serves(ps) || slices.Contains(ps.Finalizers, r.finalizer()) || ps.DeletionTimestamp != nil && len(r.others(ps)) > 0 ||
		slices.ContainsFunc(ps.Status.Stores, func(s v1alpha1.PushStoreStatus) bool { return r.ours(s) })
}

// ours reports whether an entry of the status is of a store that this module serves.
func (r *Reconciler) ours(s v1alpha1.PushStoreStatus) bool {
	_, ok := r.routes.Serves(&v1alpha1.StoreRef{APIVersion: s.APIVersion, Kind: s.Kind})
	return ok
}

// foreign returns the entries of the status that other modules write.
func (r *Reconciler) foreign(ps *v1alpha1.PushSecret) []v1alpha1.PushStoreStatus {
	return slices.DeleteFunc(slices.Clone(ps.Status.Stores), r.ours)
}

// finalizer keeps an object until this module has removed what it created. Each class has its own.
func (r *Reconciler) finalizer() string { return r.opts.Module + finalizerName + r.class() }

const finalizerName = "/pushsecret"

// class tells operators of one module apart that serve stores of different classes.
func (r *Reconciler) class() string {
	if r.opts.ControllerClass == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(r.opts.ControllerClass))
	return "-" + hex.EncodeToString(sum[:4])
}

// others returns the finalizers of other modules.
func (r *Reconciler) others(ps *v1alpha1.PushSecret) []string {
	return slices.DeleteFunc(slices.Clone(ps.Finalizers), func(f string) bool {
		return f == r.finalizer() || !strings.Contains(f, "."+v1alpha1.Group+finalizerName)
	})
}
