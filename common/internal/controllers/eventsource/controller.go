// Package eventsource is the controller that receives messages about changed secrets, and wakes the objects that read or push
// these secrets. It reads no secret: the objects' own controllers do.
package eventsource

import (
	"context"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Setup adds a controller for each event source Kind to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, resolver *resolve.Resolver, o setup.Options) error {
	if o.NoRemoteChanges {
		return nil // Receiving a message changes the queue.
	}
	for _, k := range o.Kinds {
		if !k.EventSource || k.Cluster && o.Namespaced {
			continue
		}
		r := &Reconciler{
			cache: mgr.GetCache(), live: live, pool: pool, kind: k, opts: o,
			matcher: matcher{cache: mgr.GetCache(), scheme: mgr.GetScheme(), resolver: resolver, namespaced: o.Namespaced, kind: k.GoName(), bus: o.Bus},
			running: map[types.NamespacedName]*receiver{},
		}
		c, err := controller.New("eventsource-"+strings.ToLower(k.GoName()), mgr, controller.Options{
			Reconciler: r, RateLimiter: ratelimiter.NewController(),
		})
		if err != nil {
			return errors.Wrap(err, "cannot create the controller")
		}
		err = c.Watch(source.Kind[client.Object](mgr.GetCache(), k.New(), &handler.EnqueueRequestForObject{}, kit.Respecified()))
		if err != nil {
			return errors.Wrapf(err, "cannot watch %s", k.GoName())
		}
		refresh.On(o.Bus, r.miss)
	}
	return nil
}

// A Reconciler runs a receiver for each event source of one Kind.
type Reconciler struct {
	cache client.Reader
	// live does not read from a cache.
	live    client.Client
	pool    *dispatch.Pool
	kind    provider.Kind
	opts    setup.Options
	matcher matcher

	mu sync.Mutex
	// Bound: one per event source.
	running map[types.NamespacedName]*receiver
	kept    receipts
}

// Reconcile starts the receiver of an event source, and ends that of an earlier generation.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o, ok := r.kind.New().(provider.EventSourceObject)
	if !ok {
		return reconcile.Result{}, errors.Errorf("%s is not an event source", r.kind.GoName())
	}
	err := r.cache.Get(ctx, req.NamespacedName, o)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot read the event source")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.running[req.NamespacedName]
	wanted := err == nil && r.kind.Serves(o) && o.GetDeletionTimestamp() == nil && provider.SourceSpec(o).Controller == r.opts.ControllerClass
	if was != nil && wanted && was.source.GetUID() == o.GetUID() && was.source.GetGeneration() == o.GetGeneration() {
		return reconcile.Result{}, nil
	}
	if was != nil {
		was.stop()
		delete(r.running, req.NamespacedName)
	}
	if wanted {
		r.running[req.NamespacedName] = r.start(ctx, o)
	}
	return reconcile.Result{}, nil
}

// miss counts a change that an event source has missed.
func (r *Reconciler) miss(_ context.Context, m refresh.Missed) {
	name, mine := strings.CutPrefix(m.By, r.kind.GoName()+"/")
	if !mine {
		return
	}
	key := types.NamespacedName{Name: name}
	if !r.kind.Cluster {
		key.Namespace = m.Namespace
	}
	r.mu.Lock()
	rc := r.running[key]
	r.mu.Unlock()
	if rc != nil {
		rc.miss(r.opts.Now())
	}
}

// start starts a receiver. It ends with the context of the controller, or when it is stopped.
func (r *Reconciler) start(ctx context.Context, o provider.EventSourceObject) *receiver {
	ctx, stop := context.WithCancel(ctx)
	rc := &receiver{Reconciler: r, source: o, stop: stop, arrived: make(chan struct{}, 1)}
	go rc.run(ctx)
	go rc.tend(ctx)
	return rc
}
