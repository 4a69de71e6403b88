package pushsecret

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
)

const controllerName = "pushsecret"

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
	mem := newMemory()
	stores := storeReader{client: live, cache: mgr.GetCache(), scheme: mgr.GetScheme(), routes: routes, namespaced: o.Namespaced}
	r := &reconciler{
		claim: claimOf(o.Module, o.ControllerClass, routes), client: live, cache: mgr.GetCache(),
		memory: mem, peers: mem, stores: stores,
		runner: &runner{pool: pool, incomplete: incomplete, timeout: o.CallTimeout},
		ledger: ledger, events: mgr.GetEventRecorder("direct-secrets"), opts: o,
	}
	if err := indexEntries(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	objects, atStores := kit.NewController(o.Walks, r.Reconcile), kit.NewController(o.Walks, r.Push)
	// The end of a push and a change of a Secret are no events of a PushSecret, so they queue the object directly.
	r.wake = func(key types.NamespacedName) { objects.Enqueue(requestFor(key), queue.High) }
	r.start, r.notified = atStores.Enqueue, atStores.Notify
	r.follow = follower{watches: follow, wake: r.wake}
	c, err := controller.New(controllerName, mgr, objects.Options(ratelimiter.NewController(), nil))
	if err != nil {
		return errors.Wrap(err, "cannot create the controller")
	}
	_, err = controller.NewTyped(controllerName+"-store", mgr, atStores.Options(
		workqueue.NewTypedItemExponentialFailureRateLimiter[unit](time.Second, time.Minute),
		func(u *unit) logr.Logger {
			log := mgr.GetLogger().WithValues("controller", controllerName)
			if u != nil {
				log = log.WithValues("namespace", u.Namespace, "name", u.Name, "storeKind", u.store.kind, "store", u.store.name)
			}
			return log
		}))
	if err != nil {
		return errors.Wrap(err, "cannot create the controller of stores")
	}
	return r.watch(c, mgr.GetCache(), o, objects.EnqueueAfter)
}
