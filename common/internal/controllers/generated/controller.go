// Package generated is the controller of generated values: it has generators make values for the objects that use them,
// stores the values in a part in the same namespace, and has them rotated, renewed and revoked.
package generated

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
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
	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// releaseEvery is the pace at which objects are let go when their generator becomes ready.
const releaseEvery = time.Second / 50

// Options of the loop.
type Options struct {
	// Module is the API group of the module.
	Module string
	// Kinds of stores that the module serves, generators among them.
	Kinds []provider.Kind
	// Concurrency is the number of workers.
	Concurrency int
	// Board knows the other operators.
	Board *presence.Board
	// ControllerClass is the class of generators that this operator serves.
	ControllerClass string
	// Namespaced is true for an operator that serves chosen namespaces only: it has no right to read
	// cluster Kinds.
	Namespaced bool
	// CallTimeout is the deadline of one call to a generator.
	CallTimeout time.Duration
	// Suspect is told of a generator that was refused. Default: nobody.
	Suspect func(k provider.Kind, s types.NamespacedName)
	// Random returns numbers in [0, 1) for jitter. Default: rand.Float64.
	Random func() float64
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Reconciler keeps the parts of the objects that use a generator of this module.
type Reconciler struct {
	// client is live, cache is not.
	client client.Client
	cache  client.Reader
	events events.EventRecorder
	log    logr.Logger
	pool   *dispatch.Pool
	routes *resolve.Routes
	rules  resolve.Rulebook
	lanes  concurrency.Lanes[request]
	opts   Options
	// enqueueAfter adds an object with a priority to the queue.
	enqueueAfter func(req request, priority int, after time.Duration)

	mu      sync.Mutex
	objects map[request]*object
}

// request names an object that uses generators; or, with the kind Secret, a part that tells no such object.
type request struct {
	kind string
	types.NamespacedName
}

// encode returns the request for the queue, which knows names only.
func (r request) encode() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.kind + "/" + r.Name}}
}

func decode(req reconcile.Request) request {
	kind, name, _ := strings.Cut(req.Name, "/")
	return request{kind, types.NamespacedName{Namespace: req.Namespace, Name: name}}
}

// Setup adds the loop to a manager, if the module has generators. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, o Options) error {
	var kinds []provider.Kind
	for _, k := range o.Kinds {
		if k.Generator {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	routes, err := resolve.New(mgr.GetCache(), mgr.GetScheme(), kinds)
	if err != nil {
		return errors.Wrap(err, "cannot route generator Kinds")
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Suspect == nil {
		o.Suspect = func(provider.Kind, types.NamespacedName) {}
	}
	r := &Reconciler{
		client: live, cache: mgr.GetCache(), events: mgr.GetEventRecorder("direct-secrets"), log: mgr.GetLogger(),
		pool: pool, routes: routes, opts: o, objects: map[request]*object{},
	}
	var q *queue.Queue[reconcile.Request]
	c, err := controller.New("generated", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             ratelimiter.NewController(),
		NewQueue: func(name string, l workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			q = queue.New(name, l)
			return q
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot make the controller")
	}
	r.enqueueAfter = func(req request, priority int, after time.Duration) {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, req.encode())
	}
	o.Board.OnChange(r.everyone)
	return r.watch(c, mgr)
}

// everyone has all objects looked at that are known.
func (r *Reconciler) everyone() {
	r.mu.Lock()
	known := slices.Collect(maps.Keys(r.objects))
	r.mu.Unlock()
	for _, req := range known {
		r.enqueueAfter(req, queue.Low, 0)
	}
}

func (r *Reconciler) enqueue(req request) { r.enqueueAfter(req, queue.High, 0) }

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// Labels of namespaces say which of them a cluster generator admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

func (r *Reconciler) watch(c controller.Controller, mgr manager.Manager) error {
	sources := []source.Source{
		source.Kind[client.Object](mgr.GetCache(), &v1alpha1.ExternalSecret{}, r.objectEvents()),
		source.Kind[client.Object](mgr.GetCache(), &v1alpha1.PushSecret{}, r.objectEvents()),
		source.Kind[client.Object](mgr.GetCache(), resolve.SecretMetadata(), r.secretEvents()),
	}
	byLabels := false
	for _, k := range r.routes.Kinds {
		if k.Cluster && r.opts.Namespaced {
			continue // Its informer would never sync.
		}
		byLabels = byLabels || k.Cluster
		sources = append(sources, source.Kind[client.Object](mgr.GetCache(), k.New(), r.generatorEvents(k)))
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

// objectEvents follows the objects that use a generator of this module, or did.
func (r *Reconciler) objectEvents() handler.EventHandler {
	enqueue := func(o client.Object) {
		if u := r.userOf(o); r.concerns(u) {
			r.enqueue(u.request())
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ requests) { enqueue(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) {
			was, is := r.userOf(e.ObjectOld), r.userOf(e.ObjectNew)
			if !r.concerns(was) && !r.concerns(is) {
				return
			}
			if was.GetUID() != is.GetUID() || was.GetDeletionTimestamp() == nil && is.GetDeletionTimestamp() != nil ||
				!reflect.DeepEqual(was.facts, is.facts) {
				r.enqueue(is.request())
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { enqueue(e.Object) },
	}
}

// secretEvents follows parts, and the Secrets that were made from them: these own their part, and hold it.
func (r *Reconciler) secretEvents() handler.EventHandler {
	onPart := func(o client.Object) {
		rec, ok := handoff.Of(o.GetAnnotations())
		req := request{rec.Kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: rec.Name}}
		switch {
		case ok && (rec.Kind == externalSecretKind || rec.Kind == pushSecretKind) && o.GetName() == r.nameOf(req):
			r.enqueue(req)
		case o.GetDeletionTimestamp() != nil && r.bears(o):
			r.enqueue(request{secretKind, client.ObjectKeyFromObject(o)})
		}
	}
	onTarget := func(ctx context.Context, o client.Object) {
		for name := range target.Marks(o.GetAnnotations()) {
			req := request{externalSecretKind, types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}
			m := resolve.SecretMetadata()
			if r.cache.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: r.nameOf(req)}, m) == nil {
				r.enqueue(req)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ requests) { onPart(e.Object); onTarget(ctx, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ requests) { onPart(e.ObjectOld); onPart(e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ requests) { onPart(e.Object); onTarget(ctx, e.Object) },
	}
}

// generatorEvents brings objects back when a generator of theirs comes, goes, changes, or becomes ready.
func (r *Reconciler) generatorEvents(k resolve.Route) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ requests) {
			if !e.IsInInitialList {
				r.release(ctx, e.Object.GetNamespace(), k, e.Object.GetName())
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ requests) {
			was, ok := e.ObjectOld.(provider.Object)
			is, ok2 := e.ObjectNew.(provider.Object)
			if !ok || !ok2 {
				return
			}
			if was.GetGeneration() != is.GetGeneration() || was.GetUID() != is.GetUID() || resolve.Held(was) != nil && resolve.Held(is) == nil {
				r.release(ctx, is.GetNamespace(), k, is.GetName())
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ requests) {
			r.rules.Forget(e.Object.GetUID())
			r.release(ctx, e.Object.GetNamespace(), k, e.Object.GetName())
		},
	}
}

// namespaceEvents has the objects of a namespace look again at whether their generators admit it.
func (r *Reconciler) namespaceEvents() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ requests) {
		if equality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
			return
		}
		for _, k := range r.routes.Kinds {
			if k.Cluster {
				r.release(ctx, e.ObjectNew.GetName(), k, "")
			}
		}
	}}
}

// release brings the objects of a namespace, or of all, back that use a generator; one of any name if that
// is empty.
func (r *Reconciler) release(ctx context.Context, namespace string, k resolve.Route, name string) {
	n := 0
	for _, list := range []client.ObjectList{&v1alpha1.ExternalSecretList{}, &v1alpha1.PushSecretList{}} {
		if err := r.cache.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return // Only a cache that is shutting down fails.
		}
		for _, o := range items(list) {
			u := r.userOf(o)
			if !u.uses(r.routes, k, name) {
				continue
			}
			if obj := r.peek(u.request()); obj != nil {
				obj.noWait()
			}
			r.enqueueAfter(u.request(), queue.High, time.Duration(n)*releaseEvery)
			n++
		}
	}
}

func items(list client.ObjectList) []client.Object {
	var out []client.Object
	switch l := list.(type) {
	case *v1alpha1.ExternalSecretList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *v1alpha1.PushSecretList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	}
	return out
}
