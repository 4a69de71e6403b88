// Package externalsecret is the controller that keeps the Secrets of ExternalSecrets in sync.
package externalsecret

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
	"github.com/direct-secrets/direct-secrets/common/internal/watch"
)

// markIndex is the cache index that returns the Secrets with the mark of an ExternalSecret.
const markIndex = "direct-secrets.io/mark"

// Options are the options that all controllers share.
type Options = setup.Options

// Setup adds the controller to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, watches *watch.Watches, refs *referrers.Referrers, o Options) error {
	ledger, err := metrics.New(mgr, "ExternalSecret", metrics.WithClock(o.Now), metrics.Following(&v1alpha1.ExternalSecret{}))
	if err != nil {
		return errors.Wrap(err, "cannot add the collector of object metrics")
	}
	if err := indexMarks(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	var r *Reconciler
	walks := kit.NewController(o.Walks, func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		return r.Reconcile(ctx, req)
	})
	enqueue := func(key types.NamespacedName, priority int) {
		walks.Enqueue(reconcile.Request{NamespacedName: key}, priority)
	}
	r = newReconciler(cluster{
		cache: mgr.GetCache(), live: live, events: mgr.GetEventRecorder("direct-secrets"), watches: watches, pool: pool,
		ledger: ledger, enqueue: enqueue,
	}, refs, o)
	c, err := controller.New("externalsecret", mgr, controller.Options{
		Reconciler: walks, RateLimiter: ratelimiter.NewController(), NewQueue: walks.NewQueue,
	})
	if err != nil {
		return errors.Wrap(err, "cannot create the controller")
	}
	objects := r.gatherer.objects
	o.Board.OnChange(func() {
		for _, key := range objects.contributedTo() {
			enqueue(key, queue.Low)
		}
	})
	h := handlers{referrers: refs, objects: objects, elected: mgr.Elected(), now: o.Now, interrupt: walks.Interrupt}
	return h.watch(c, mgr.GetCache(), o)
}

func indexMarks(indexer client.FieldIndexer) error {
	err := indexer.IndexField(context.Background(), resolve.SecretMetadata(), markIndex, func(obj client.Object) []string {
		return slices.Collect(maps.Keys(target.Marks(obj.GetAnnotations())))
	})
	return errors.Wrap(err, "cannot index Secrets by mark")
}

// cluster holds the clients and the process-wide services that a Reconciler uses.
type cluster struct {
	cache client.Reader
	// live does not read from a cache.
	live    client.Client
	events  events.EventRecorder
	watches *watch.Watches
	pool    *dispatch.Pool
	ledger  *metrics.Ledger
	// enqueue adds an object to the work queue.
	enqueue func(key types.NamespacedName, priority int)
}

// newReconciler returns a Reconciler with the steps of a pass.
func newReconciler(c cluster, refs *referrers.Referrers, o Options) *Reconciler {
	objects := &objects{}
	r := &Reconciler{
		gatherer: gatherer{
			identity: &identity{o.Module, o.DefaultCleanupPolicy}, cache: c.cache, live: c.live, referrers: refs, objects: objects,
			templates: templateReader{c.live, c.watches, c.enqueue},
			parts:     partReader{c.cache, c.live, o.Board, o.Now},
		},
		decider: decider{now: o.Now, random: o.Random, started: o.Now()},
		pool:    c.pool,
		reporter: reporter{
			client: c.live, events: c.events, objects: objects, ledger: c.ledger, watches: c.watches,
			random: o.Random, now: o.Now, enqueue: c.enqueue,
		},
		suspect: o.Suspect,
	}
	r.applier = applier{gatherer: &r.gatherer, writer: target.NewWriter(c.live, o.Audit), events: c.events, now: o.Now, overtaken: overtaken}
	r.cleaner = cleaner{&r.gatherer, &r.applier}
	return r
}
