package pushsecret

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
)

// Setup adds the PushSecret controller to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, follow *watch.Watches, o setup.Options) error {
	routes, err := resolve.NewResolver(mgr.GetCache(), mgr.GetScheme(), o.Kinds, o.ControllerClass, o.Namespaced)
	if err != nil {
		return errors.Wrap(err, "cannot look up the store Kinds")
	}
	ledger, err := metrics.New(mgr, "PushSecret", metrics.WithClock(o.Now), metrics.Following(&v1alpha1.PushSecret{}))
	if err != nil {
		return errors.Wrap(err, "cannot add the collector of object metrics")
	}
	var q requests
	// The end of a push and a change of a Secret are no events of a PushSecret, so they add the object to the queue
	// directly.
	wake := func(key types.NamespacedName) { queue.AddTo(q, queue.High, 0, requestFor(key)) }
	mem, identities := newMemory(), &places{}
	stores := storeReader{client: live, routes: routes, namespaced: o.Namespaced}
	r := &reconciler{
		claim: claimOf(o.Module, o.ControllerClass, routes), client: live, cache: mgr.GetCache(),
		memory: mem,
		users:  users{stores: stores, cache: mgr.GetCache(), memory: mem, places: identities, wake: wake},
		stores: stores,
		follow: follower{watches: follow, wake: wake},
		runner: &runner{pool: pool, places: identities, incomplete: incomplete, timeout: o.CallTimeout, wake: wake},
		ledger: ledger, events: mgr.GetEventRecorder("direct-secrets"), opts: o,
	}
	c, err := controller.New("pushsecret", mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: max(1, o.Walks.Slots/4), // Workers never wait for a provider.
		RateLimiter:             ratelimiter.NewController(),
		NewQueue: func(name string, l workqueue.TypedRateLimiter[reconcile.Request]) requests {
			q = queue.New(name, l)
			return q
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot create the controller")
	}
	w := &watches{claim: r.claim, memory: r.memory, cache: mgr.GetCache()}
	return w.start(c, o)
}
