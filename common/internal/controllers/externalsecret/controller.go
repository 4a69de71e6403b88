// Package externalsecret is the controller that keeps the Secrets of ExternalSecrets in sync.
package externalsecret

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

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
	if err := indexMarks(mgr.GetFieldIndexer(), resolve.SecretMetadata()); err != nil {
		return err
	}
	r := newReconciler(Reconciler{
		cache: target.ConfigMapReader{Reader: mgr.GetCache(), Off: !o.ConfigMapTargets},
		live:  target.ConfigMapClient{Client: live}, referrers: refs, pool: pool, watches: watches,
		events: mgr.GetEventRecorder("direct-secrets"), ledger: ledger, opts: o,
	})
	walks := kit.NewController(o.Walks, r.Reconcile)
	r.enqueue = func(key types.NamespacedName, priority int) {
		walks.Enqueue(reconcile.Request{NamespacedName: key}, priority)
	}
	c, err := controller.New("externalsecret", mgr, walks.Options(ratelimiter.NewController(), nil))
	if err != nil {
		return errors.Wrap(err, "cannot create the controller")
	}
	o.Board.OnChange(func() {
		for _, key := range r.objects.contributedTo() {
			r.enqueue(key, queue.Low)
		}
	})
	h := handlers{referrers: refs, objects: r.objects, elected: mgr.Elected(), now: o.Now, interrupt: walks.Interrupt, notified: walks.Notify, enqueue: walks.EnqueueAfter}
	if err := h.watch(c, mgr.GetCache(), o); err != nil || !o.ConfigMapTargets {
		return err
	}
	maps := target.ConfigMapMetadata()
	if err := indexMarks(mgr.GetFieldIndexer(), maps); err != nil {
		return err
	}
	return errors.Wrap(c.Watch(source.Kind[client.Object](mgr.GetCache(), maps, target.ConfigMapEvents(h.secretEvents()))), "cannot watch ConfigMaps")
}

func indexMarks(indexer client.FieldIndexer, targets client.Object) error {
	err := indexer.IndexField(context.Background(), targets, markIndex, func(obj client.Object) []string {
		return slices.Collect(maps.Keys(target.Marks(obj.GetAnnotations())))
	})
	return errors.Wrap(err, "cannot index targets by mark")
}
