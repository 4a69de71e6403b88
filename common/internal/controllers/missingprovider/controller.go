// Package missingprovider is the controller that reports on objects whose operator is not running: no module serves the
// Kind of their store, or no operator of this module serves its controller class.
package missingprovider

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
)

// The cache has only a few fields of the objects of other modules, so each object is read live before its status is
// written. liveReads is the maximum rate of these reads per second, liveBurst their maximum burst.
const liveReads, liveBurst = 100, 200

// An absence is why no running operator serves an object.
type absence struct {
	name string
	// held reports whether this process reports it, and not another one.
	held func() bool
	// find returns the verdict on an object in namespace that has been waiting for a store since a time. An object that names
	// no store has an empty ref. The verdict is nil if an operator serves the object, or wait is the delay until the next
	// check.
	find func(ref v1alpha1.StoreRef, namespace string, since time.Time) (v *status.Verdict, wait time.Duration)
}

// ofModules is the absence of the module of a Kind. The holder of the shared duties reports it.
func ofModules(board *presence.Board, duties *presence.Duties, unnamed string) absence {
	return absence{"missingprovider", duties.Held, func(ref v1alpha1.StoreRef, namespace string, since time.Time) (*status.Verdict, time.Duration) {
		if ref == (v1alpha1.StoreRef{}) {
			return ptr.To(status.Stalled(v1alpha1.ReasonInvalidSpec, unnamed)), 0
		}
		if missing, wait := board.Missing(&ref, namespace, since); !missing {
			return nil, wait
		}
		return ptr.To(status.Stalled(v1alpha1.ReasonProviderNotRunning, board.Hint(&ref))), 0
	}}
}

// ofClasses is the absence of the operator of a controller class. The operator that reports it on a store reports it on
// the objects of the store.
func ofClasses(board *presence.Board) absence {
	held := func() bool { return true }
	return absence{"missingclass", held, func(ref v1alpha1.StoreRef, namespace string, _ time.Time) (*status.Verdict, time.Duration) {
		class, message := board.Classes.Find(ref, namespace)
		if message == "" {
			return nil, 0
		}
		// The store is checked once a minute, and an operator may have started meanwhile.
		if missing, _ := board.MissingClass(&ref, class, namespace, time.Time{}); missing {
			return ptr.To(status.Stalled(v1alpha1.ReasonProviderNotRunning, message)), 0
		}
		return nil, 0
	}}
}

// Setup adds the controllers to a manager, two for each Kind of objects. live must not read from a cache. If presence
// is off, Setup adds nothing.
func Setup(mgr manager.Manager, live client.Client, board *presence.Board, duties *presence.Duties) error {
	if !board.On() {
		return nil
	}
	for _, k := range []kind{externalSecrets(), pushSecrets()} {
		for _, a := range []absence{ofModules(board, duties, k.unnamed), ofClasses(board)} {
			ledger, err := metrics.New(mgr, k.kind, metrics.While(a.held))
			if err != nil {
				return errors.Wrap(err, "cannot add the collector of object metrics")
			}
			r := &reconciler{
				client: live, cache: mgr.GetCache(), events: mgr.GetEventRecorder("direct-secrets"), kind: k,
				absence: a, waiting: waiting{ledger: ledger},
				writeLimiter: flowcontrol.NewTokenBucketRateLimiter(liveReads, liveBurst),
			}
			c, err := controller.New(a.name+"-"+k.name, mgr, controller.Options{
				Reconciler: r, MaxConcurrentReconciles: 2, RateLimiter: ratelimiter.NewController(),
			})
			if err != nil {
				return errors.Wrap(err, "cannot create the controller")
			}
			if err := r.watch(c, board, duties); err != nil {
				return errors.Wrap(err, "cannot watch")
			}
		}
	}
	return nil
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch

func (r *reconciler) watch(c controller.Controller, board *presence.Board, duties *presence.Duties) error {
	// One pending event is enough: each one leads to a check of all objects.
	again := make(chan event.GenericEvent, 1)
	wake := func() {
		select {
		case again <- event.GenericEvent{Object: r.kind.empty()}:
		default:
		}
	}
	board.OnChange(wake)
	board.Classes.OnChange(wake)
	duties.OnHeld(wake)
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

// hasNoModule reports whether no running operator serves an object. Most objects are served, and need only this check.
func (r *reconciler) hasNoModule(o client.Object) bool {
	_, v, wait := r.check(o)
	return v != nil || wait > 0
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
