package externalsecret

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// storeIndex is the cache index from a store to the objects that refer to it.
const storeIndex = "direct-secrets.io/store"

// markIndex is the cache index from an ExternalSecret to the Secrets that bear its mark.
const markIndex = "direct-secrets.io/mark"

// releaseEvery is the pace at which objects are let go when their store becomes ready: the first at
// once, then fifty a second.
const releaseEvery = time.Second / 50

// Options of the loop.
type Options struct {
	// Module is the API group of the module, in labels and marks.
	Module string
	// Kinds of stores that the module serves.
	Kinds []provider.Kind
	// Concurrency is the number of workers.
	Concurrency int
	// ControllerClass is the class of stores that this operator serves.
	ControllerClass string
	// Credentials brings the news that credentials beside objects have changed.
	Credentials *Credentials
	// Suspect is told of a store that refuses a read. Default: nobody.
	Suspect func(k provider.Kind, s types.NamespacedName)
	// Board knows the other operators.
	Board *presence.Board
	// Namespaced is true for an operator that serves chosen namespaces only: it has no right to
	// read cluster Kinds.
	Namespaced bool
	// DefaultCleanupPolicy is for objects that leave cleanupPolicy unset.
	DefaultCleanupPolicy v1alpha1.CleanupPolicy
	// Random returns numbers in [0, 1) for jitter. Default: rand.Float64.
	Random func() float64
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Setup adds the loop to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, watches *watch.Watches, o Options) error {
	routes, err := newRoutes(mgr.GetCache(), mgr.GetScheme(), o.Kinds, o.Module, o.ControllerClass, o.Namespaced)
	if err != nil {
		return errors.Wrap(err, "cannot route store Kinds")
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Suspect == nil {
		o.Suspect = func(provider.Kind, types.NamespacedName) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ledger, err := metrics.New(mgr, "ExternalSecret", metrics.WithClock(o.Now), metrics.Following(&v1alpha1.ExternalSecret{}))
	if err != nil {
		return errors.Wrap(err, "cannot add the ledger")
	}
	r := &Reconciler{
		client:  live,
		cache:   mgr.GetCache(),
		events:  mgr.GetEventRecorder("direct-secrets"),
		writer:  target.NewWriter(live),
		pool:    pool,
		watches: watches,
		routes:  routes,
		opts:    o,
		objects: newObjects(),
		ledger:  ledger,
		elected: mgr.Elected(),
		backoff: ratelimiter.NewController(),
		started: o.Now(),
	}
	err = mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.ExternalSecret{}, storeIndex, func(obj client.Object) []string {
		es, ok := obj.(*v1alpha1.ExternalSecret)
		if !ok {
			return nil
		}
		return routes.storeKeys(es)
	})
	if err != nil {
		return errors.Wrap(err, "cannot index ExternalSecrets by store")
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), resolve.SecretMetadata(), markIndex, func(obj client.Object) []string {
		return slices.Collect(maps.Keys(target.Marks(obj.GetAnnotations())))
	}); err != nil {
		return errors.Wrap(err, "cannot index Secrets by mark")
	}
	var q *queue.Queue[reconcile.Request]
	c, err := controller.New("externalsecret", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             ratelimiter.NewController(),
		NewQueue: func(name string, l workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			q = queue.New(name, l)
			pool.WatchQueue(q.Others, o.Concurrency)
			return q
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot make the controller")
	}
	r.enqueueAfter = func(key types.NamespacedName, priority int, after time.Duration) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, reconcile.Request{NamespacedName: key})
	}
	o.Board.OnChange(func() {
		for _, key := range r.objects.shared() {
			r.enqueue(key, queue.Low)
		}
	})
	if o.Credentials != nil {
		changed := r.credentialChanged
		o.Credentials.told.Store(&changed)
	}
	return r.watch(c, mgr)
}

// Credentials carries the news of credentials that were looked up beside objects, as
// authenticationScope ManifestNamespace asks, from the connection pool to the loop.
type Credentials struct {
	told atomic.Pointer[func(k provider.Kind, s types.NamespacedName, namespace string)]
}

// Changed says that the credentials of a store have changed in a namespace.
func (c *Credentials) Changed(k provider.Kind, s types.NamespacedName, namespace string) {
	if f := c.told.Load(); f != nil {
		(*f)(k, s, namespace)
	}
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// Labels of namespaces say which of them a cluster store admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

func (r *Reconciler) watch(c controller.Controller, mgr manager.Manager) error {
	secrets := resolve.SecretMetadata()
	sources := []source.Source{
		source.Kind[client.Object](mgr.GetCache(), &v1alpha1.ExternalSecret{}, r.objectEvents()),
		source.Kind[client.Object](mgr.GetCache(), secrets, r.secretEvents()),
	}
	for _, k := range r.routes.Kinds {
		if k.Cluster && r.opts.Namespaced {
			continue // Its informer would never sync.
		}
		sources = append(sources, source.Kind[client.Object](mgr.GetCache(), k.New(), r.storeEvents(k)))
	}
	if !r.opts.Namespaced && slices.ContainsFunc(r.routes.Kinds, func(k resolve.Route) bool { return k.Cluster }) {
		sources = append(sources, source.Kind[client.Object](mgr.GetCache(), resolve.NamespaceMetadata(), r.namespaceEvents()))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	// The index has the cache of ExternalSecrets fill before this replica leads. That of Secrets, the
	// other large one, shall fill meanwhile and not after.
	_, err := mgr.GetCache().GetInformer(context.Background(), secrets, cache.BlockUntilSynced(false))
	return errors.Wrap(err, "cannot watch Secrets")
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// objectEvents ranks: what was never synced or has changed goes first, and so does not wait behind
// what a restart lists.
func (r *Reconciler) objectEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) {
			es, ok := e.Object.(*v1alpha1.ExternalSecret)
			if !ok || !r.routes.concerns(es) {
				return
			}
			priority := queue.High
			if es.Status.RefreshTime != nil && es.Status.ObservedGeneration == es.Generation {
				priority = queue.Low
			}
			if priority == queue.High {
				r.objects.changed(client.ObjectKeyFromObject(es), es.Generation, r.opts.Now())
			}
			r.enqueue(client.ObjectKeyFromObject(es), priority)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) {
			was, ok := e.ObjectOld.(*v1alpha1.ExternalSecret)
			is, ok2 := e.ObjectNew.(*v1alpha1.ExternalSecret)
			if ok && ok2 {
				r.updated(was, is)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) {
			r.objects.unchanged(client.ObjectKeyFromObject(e.Object))
			r.enqueue(client.ObjectKeyFromObject(e.Object), queue.High)
			r.enqueueAwaiting(e.Object.GetNamespace())
		},
	}
}

// updated brings an object back that has changed, unless only its status moved.
func (r *Reconciler) updated(was, es *v1alpha1.ExternalSecret) {
	key := client.ObjectKeyFromObject(es)
	obj := r.objects.peek(key)
	if obj != nil {
		obj.sawStatus(es.ResourceVersion)
	}
	if !r.leads() && es.Status.ObservedGeneration == es.Generation {
		r.objects.unchanged(key) // The replica that does has seen to it.
	}
	other := was.Generation != es.Generation || was.UID != es.UID
	if other {
		r.enqueueAwaiting(es.Namespace)
	}
	mine := r.routes.concerns(es)
	switch {
	case !mine && !r.routes.concerns(was):
	case mine && !slices.Equal(was.Status.Parts, es.Status.Parts):
		if obj != nil && r.routes.claims(es) {
			obj.hold(time.Time{})
		}
		r.enqueue(key, queue.High)
	case !mine, other, metadataHash(was) != metadataHash(es),
		was.Annotations[v1alpha1.RefreshRequestAnnotation] != es.Annotations[v1alpha1.RefreshRequestAnnotation]:
		if mine {
			r.objects.changed(key, es.Generation, r.opts.Now())
		}
		r.enqueue(key, queue.High)
	}
}

// enqueueAwaiting has those look again that wait for a Secret or a key of it, since an ExternalSecret
// beside them has changed: what it leaves alone from now on is free, and no event of the Secret tells.
func (r *Reconciler) enqueueAwaiting(namespace string) {
	for _, key := range r.objects.awaiting(namespace) {
		r.enqueue(key, queue.High)
	}
}

// secretEvents brings an object back when its target changed, but not for the echo of its own
// write.
func (r *Reconciler) secretEvents() handler.EventHandler {
	// was is the version before, which may have had a mark that is no more.
	on := func(was, is client.Object, deleted bool) {
		key, ok := r.partEvent(is)
		if !ok {
			key, ok = r.partEvent(was) // Somebody has taken its annotation.
		}
		if ok {
			if obj := r.objects.peek(key); obj != nil {
				if deleted {
					obj.lostPart(is)
				}
				r.enqueue(key, queue.High)
			}
		}
		names := map[string]bool{}
		for _, s := range []client.Object{was, is} {
			for name := range target.Marks(s.GetAnnotations()) {
				names[name] = true
			}
		}
		for name := range names {
			key := types.NamespacedName{Namespace: is.GetNamespace(), Name: name}
			obj := r.objects.peek(key)
			if obj == nil || obj.sawSecret(is, deleted) {
				continue
			}
			r.enqueue(key, queue.High)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) { on(e.Object, e.Object, false) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) { on(e.ObjectOld, e.ObjectNew, false) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { on(e.Object, e.Object, true) },
	}
}

// storeEvents lets the objects of a store go when it becomes ready or has changed: those that are
// not in step, new ones first.
func (r *Reconciler) storeEvents(k resolve.Route) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ requests) {
			if !e.IsInInitialList {
				r.release(ctx, k, client.ObjectKeyFromObject(e.Object), everyone)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ requests) {
			was, ok := e.ObjectOld.(provider.Object)
			is, ok2 := e.ObjectNew.(provider.Object)
			if !ok || !ok2 {
				return
			}
			changed := was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID()
			if changed || (resolve.Held(was) != nil && resolve.Held(is) == nil) {
				r.release(ctx, k, client.ObjectKeyFromObject(is), everyone)
			}
			if changed && k.Cluster {
				r.recheck(ctx, k, client.ObjectKeyFromObject(is))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { r.routes.Forget(e.Object.GetUID()) },
	}
}

func everyone(*v1alpha1.ExternalSecret) bool { return true }

// recheck has the objects that are in step look at whether the store still admits them.
func (r *Reconciler) recheck(ctx context.Context, k resolve.Route, s types.NamespacedName) {
	for i, es := range r.users(ctx, k, s) {
		if meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) {
			r.enqueueAfter(client.ObjectKeyFromObject(es), queue.Low, time.Duration(i)*time.Millisecond)
		}
	}
}

// users returns the objects that refer to a store.
func (r *Reconciler) users(ctx context.Context, k resolve.Route, s types.NamespacedName) []*v1alpha1.ExternalSecret {
	var list v1alpha1.ExternalSecretList
	if err := r.cache.List(ctx, &list, client.MatchingFields{storeIndex: k.IndexKey(s)}); err != nil {
		return nil // Only a cache that is shutting down, or has no such index, fails.
	}
	var users []*v1alpha1.ExternalSecret
	for i := range list.Items {
		if k.Cluster || list.Items[i].Namespace == s.Namespace {
			users = append(users, &list.Items[i])
		}
	}
	return users
}

// release lets those objects of a store go that are not in step and for which which is true, new ones
// first.
func (r *Reconciler) release(ctx context.Context, k resolve.Route, s types.NamespacedName, which func(*v1alpha1.ExternalSecret) bool) {
	var waiting []*v1alpha1.ExternalSecret
	for _, es := range r.users(ctx, k, s) {
		if !which(es) {
			continue
		}
		// What this operator has not looked at came from one of another class.
		obj := r.objects.peek(client.ObjectKeyFromObject(es))
		if obj == nil || obj.contributes.Load() || !meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) {
			waiting = append(waiting, es)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *v1alpha1.ExternalSecret) int {
		return rank(a) - rank(b)
	})
	for i, es := range waiting {
		key := client.ObjectKeyFromObject(es)
		if obj := r.objects.peek(key); obj != nil {
			obj.hold(time.Time{})
		}
		r.enqueueAfter(key, queue.High-rank(es), time.Duration(i)*releaseEvery)
	}
}

// rank orders what is let go: new objects before those that were in step once.
func rank(es *v1alpha1.ExternalSecret) int {
	if es.Status.RefreshTime == nil {
		return 0
	}
	return 1
}
