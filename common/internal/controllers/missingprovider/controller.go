// Package missingprovider is the controller that reports on objects whose module is not running.
package missingprovider

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
)

// The cache has only a few fields of the objects of other modules, so each object is read live before its status is
// written. liveReads is the maximum rate of these reads per second, liveBurst their maximum burst.
const liveReads, liveBurst = 100, 200

// Setup adds the controller to a manager, once for each Kind of objects. live must not read from a cache. If presence
// is off, Setup adds nothing.
func Setup(mgr manager.Manager, live client.Client, board *presence.Board, duties *presence.Duties) error {
	if !board.On() {
		return nil
	}
	for _, k := range []kind{externalSecrets(), pushSecrets()} {
		ledger, err := metrics.New(mgr, k.kind, metrics.While(duties.Held))
		if err != nil {
			return errors.Wrap(err, "cannot add the collector of object metrics")
		}
		r := &reconciler{
			client: live, cache: mgr.GetCache(), events: mgr.GetEventRecorder("direct-secrets"), kind: k,
			board: board, duties: duties, waiting: waiting{ledger: ledger},
			writeLimiter: flowcontrol.NewTokenBucketRateLimiter(liveReads, liveBurst),
		}
		c, err := controller.New("missingprovider-"+k.name, mgr, controller.Options{
			Reconciler: r, MaxConcurrentReconciles: 2, RateLimiter: ratelimiter.NewController(),
		})
		if err != nil {
			return errors.Wrap(err, "cannot create the controller")
		}
		if err := r.watch(c); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch

func (r *reconciler) watch(c controller.Controller) error {
	// One pending event is enough: each one leads to a check of all objects.
	again := make(chan event.GenericEvent, 1)
	wake := func() {
		select {
		case again <- event.GenericEvent{Object: r.kind.empty()}:
		default:
		}
	}
	r.board.OnChange(wake)
	r.duties.OnHeld(wake)
	events := predicate.NewPredicateFuncs(r.hasNoModule)
	events.DeleteFunc = func(e event.DeleteEvent) bool {
		r.waiting.forget(client.ObjectKeyFromObject(e.Object))
		return false
	}
	return errors.Join(
		c.Watch(source.Kind[client.Object](r.cache, r.kind.empty(), &handler.EnqueueRequestForObject{}, events)),
		c.Watch(source.Channel(again, handler.EnqueueRequestsFromMapFunc(r.allWithoutModule))),
	)
}

// hasNoModule reports whether no running module serves an object. Most objects are served, and need only this check.
func (r *reconciler) hasNoModule(o client.Object) bool {
	_, wait, missing := r.check(o)
	return missing || wait > 0
}

// allWithoutModule checks all objects, because modules have started or stopped, or this operator has taken up the shared
// duties.
func (r *reconciler) allWithoutModule(ctx context.Context, _ client.Object) (all []reconcile.Request) {
	list := r.kind.list()
	if err := r.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache fails only while it shuts down.
	}
	for _, o := range kit.Items(list) {
		if r.hasNoModule(o) {
			all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	return all
}
