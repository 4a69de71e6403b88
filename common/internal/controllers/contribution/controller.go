// Package contribution is the controller that reads for ExternalSecrets that another operator claims. It stores the
// values that they read from stores of this operator in a part.
package contribution

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
)

// Options are the options that all controllers share.
type Options = setup.Options

// Setup adds the controller to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, refs *referrers.Referrers, o Options) error {
	r := New(mgr.GetCache(), live, pool, refs, o)
	walks := kit.NewController(o.Walks, r.Reconcile)
	c, err := controller.New("contribution", mgr, walks.Options(ratelimiter.NewController(), nil))
	if err != nil {
		return errors.Wrap(err, "cannot create the controller")
	}
	o.Board.OnChange(func() {
		for _, key := range r.objects.Keys(nil) {
			walks.Enqueue(reconcile.Request{NamespacedName: key}, queue.Low)
		}
	})
	return handlers{refs, r.objects, walks.Interrupt, walks.Notify, walks.EnqueueAfter}.watch(c, mgr.GetCache(), o)
}

// New returns a Reconciler. live must not read from a cache.
func New(cache client.Reader, live client.Client, pool *dispatch.Pool, refs *referrers.Referrers, o Options) *Reconciler {
	return &Reconciler{
		cache: cache, live: live, referrers: refs, pool: pool, opts: o, started: o.Now(),
		objects: &kit.Memory[types.NamespacedName, object]{},
	}
}

// Events returns handlers that enqueue changed objects, and the objects of changed parts. interrupt ends the wait for a
// store in the walk over an object.
func (r *Reconciler) Events(interrupt func(reconcile.Request)) (objects, parts handler.EventHandler) {
	h := handlers{r.referrers, r.objects, interrupt, nil, nil}
	return h.objectEvents(), h.partEvents()
}

// handlers map events to the objects that they enqueue.
type handlers struct {
	referrers *referrers.Referrers
	objects   *kit.Memory[types.NamespacedName, object]
	interrupt func(reconcile.Request)
	// notified is kit.Controller.Notify, and enqueue is kit.Controller.EnqueueAfter.
	notified func(req reconcile.Request, source any, after time.Duration)
	enqueue  func(req reconcile.Request, priority int, after time.Duration)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch

func (h handlers) watch(c controller.Controller, from cache.Cache, o Options) error {
	wake := &kit.Wake[reconcile.Request]{Resolver: h.referrers.Resolver, Namespaced: o.Namespaced, Referrers: h.referring, Free: h.free, Notify: h.notify, Enqueue: h.enqueue}
	for _, s := range append([]source.Source{
		source.Kind[client.Object](from, &v1alpha1.ExternalSecret{}, h.objectEvents()),
		source.Kind[client.Object](from, resolve.SecretMetadata(), h.partEvents()),
	}, wake.Sources(from, o.Bus)...) {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

// referring returns the objects of other operators that refer to a store.
func (h handlers) referring(ctx context.Context, k resolve.Route, store types.NamespacedName, namespace string) []kit.Referrer[reconcile.Request] {
	var all []kit.Referrer[reconcile.Request]
	for _, es := range h.referrers.To(ctx, k, store, namespace) {
		key := client.ObjectKeyFromObject(es)
		if !h.referrers.MayContribute(es) {
			continue
		}
		if h.objects.Peek(key) == nil { // An object with a memory may have to be forgotten now.
			if mine, err := h.referrers.Mine(ctx, es); err == nil && mine {
				continue
			}
		}
		all = append(all, kit.Referrer[reconcile.Request]{Object: reconcile.Request{NamespacedName: key}, New: es.Status.RefreshTime == nil, Waits: true})
	}
	return all
}

func (h handlers) free(req reconcile.Request) {
	if obj := h.objects.Peek(req.NamespacedName); obj != nil {
		obj.attempts.Free()
	}
}

// notify notifies the objects of other operators for which this one reads remote secrets that have changed. Their status does not
// show the versions of this operator's values before the part is taken.
func (h handlers) notify(ctx context.Context, k resolve.Route, c *refresh.Change) {
	for _, es := range h.referrers.Reading(ctx, k, c) {
		contributes, err := h.referrers.Contributes(ctx, es)
		if err != nil || !contributes {
			continue
		}
		req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(es)}
		obj, _ := h.objects.Get(req.NamespacedName, es.UID)
		h.notified(req, c.Source, obj.attempts.Notify(c.At, c.By))
	}
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

func enqueue(q requests, priority int, key types.NamespacedName) {
	queue.AddTo(q, priority, 0, reconcile.Request{NamespacedName: key})
}

func (h handlers) objectEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) {
			if es, ok := e.Object.(*v1alpha1.ExternalSecret); ok && h.referrers.MayContribute(es) {
				enqueue(q, referrers.Priority(es), client.ObjectKeyFromObject(es))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) {
			was, ok := e.ObjectOld.(*v1alpha1.ExternalSecret)
			is, ok2 := e.ObjectNew.(*v1alpha1.ExternalSecret)
			if !ok || !ok2 || !h.referrers.MayContribute(was) && !h.referrers.MayContribute(is) {
				return
			}
			if referrers.Changed(was, is) {
				h.interrupt(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(is)})
			}
			if referrers.Changed(was, is) || !slices.Equal(was.Status.Parts, is.Status.Parts) {
				enqueue(q, queue.High, client.ObjectKeyFromObject(is))
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) {
			if key := client.ObjectKeyFromObject(e.Object); h.objects.Peek(key) != nil {
				h.interrupt(reconcile.Request{NamespacedName: key})
				enqueue(q, queue.High, key)
			}
		},
	}
}

// partEvents enqueue the object of a changed part.
func (h handlers) partEvents() handler.EventHandler {
	on := func(was, is client.Object, deleted bool, q requests) {
		// A user may have removed its record, so was counts, too.
		key, ok := handoff.Owner("ExternalSecret", is, was)
		obj := h.objects.Peek(key)
		if !ok || obj == nil {
			return
		}
		if deleted {
			obj.part.Deleted(is)
		}
		enqueue(q, queue.High, key)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) { on(e.Object, e.Object, false, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) { on(e.ObjectOld, e.ObjectNew, false, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q requests) { on(e.Object, e.Object, true, q) },
	}
}
