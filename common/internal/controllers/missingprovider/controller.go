// Package missingprovider is the controller that reports on objects whose module does not run.
package missingprovider

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
)

// The cache has little of objects of other modules, so each is read live before anything is said of it: at most
// so many a second, and so many at once.
const liveReads, liveBurst = 100, 200

// Setup adds the loop to a manager, once for each Kind of objects. live must not read from a cache. Without
// presence there is none.
func Setup(mgr manager.Manager, live client.Client, board *presence.Board, duties *presence.Duties) error {
	if !board.On() {
		return nil
	}
	for _, k := range []kind{externalSecrets(), pushSecrets()} {
		ledger, err := metrics.New(mgr, k.kind, metrics.While(duties.Held))
		if err != nil {
			return errors.Wrap(err, "cannot add the ledger")
		}
		r := &reconciler{
			client: live, cache: mgr.GetCache(), events: mgr.GetEventRecorder("direct-secrets"), kind: k,
			board: board, duties: duties, waiting: waiting{ledger: ledger},
			pace: flowcontrol.NewTokenBucketRateLimiter(liveReads, liveBurst),
		}
		c, err := controller.New("missingprovider-"+k.name, mgr, controller.Options{
			Reconciler: r, MaxConcurrentReconciles: 2, RateLimiter: ratelimiter.NewController(),
		})
		if err != nil {
			return errors.Wrap(err, "cannot make the controller")
		}
		if err := r.watch(c); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch

func (r *reconciler) watch(c controller.Controller) error {
	// One entry suffices: whatever is told, all objects are looked at.
	again := make(chan event.GenericEvent, 1)
	tell := func() {
		select {
		case again <- event.GenericEvent{Object: r.kind.empty()}:
		default:
		}
	}
	r.board.OnChange(tell)
	r.duties.OnHeld(tell)
	return errors.Join(
		c.Watch(source.Kind[client.Object](r.cache, r.kind.empty(), r.objectEvents())),
		c.Watch(source.Channel(again, handler.Funcs{GenericFunc: r.everyObject})),
	)
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *reconciler) objectEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q requests) { r.changed(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q requests) { r.changed(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) {
			r.waiting.forget(client.ObjectKeyFromObject(e.Object))
		},
	}
}

// changed enqueues an object that nobody serves. Most have somebody, and cost no more than this.
func (r *reconciler) changed(o client.Object, q requests) {
	if _, wait, missing := r.judge(o); missing || wait > 0 {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
}

// everyObject looks at all objects, since modules have come or gone, or this one has come to speak for them.
func (r *reconciler) everyObject(ctx context.Context, _ event.GenericEvent, q requests) {
	list := r.kind.list()
	if err := r.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return // Only a cache that is shutting down fails.
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := item.(client.Object); ok {
			r.changed(o, q)
		}
		return nil
	})
}
