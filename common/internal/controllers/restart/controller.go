// Package restart is the controller that restarts workloads when the data of the Secret of an ExternalSecret changes. A walk is
// over all ExternalSecrets of a namespace, so that a workload restarts once for several Secrets.
package restart

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/direct-secrets/direct-secrets/common/internal/referrers"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// Setup adds the controller to a manager, if the operator is permitted to restart workloads. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, refs *referrers.Referrers, o setup.Options) error {
	if !o.WorkloadRestarts {
		return nil
	}
	ledger, err := metrics.New(mgr, "ExternalSecret", metrics.OfRestarts())
	if err != nil {
		return errors.Wrap(err, "cannot add the collector of object metrics")
	}
	workloads, err := newLister(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return errors.Wrap(err, "cannot create a client for workloads")
	}
	targets := target.ConfigMapClient{Client: live}
	r := &Reconciler{
		cache: target.ConfigMapReader{Reader: mgr.GetCache(), Off: !o.ConfigMapTargets},
		live:  live, workloads: workloads, writer: target.NewWriter(targets, nil), referrers: refs, opts: o,
		events: mgr.GetEventRecorder("direct-secrets"), ledger: ledger,
		known: map[string]map[types.UID]known{}, nextList: map[string]time.Time{},
	}
	walks := kit.NewController(o.Walks, r.Reconcile)
	c, err := controller.New("restart", mgr, walks.Options(ratelimiter.NewController(), nil))
	if err != nil {
		return errors.Wrap(err, "cannot create the controller")
	}
	return errors.Wrap(r.watch(c, mgr), "cannot watch")
}

func (r *Reconciler) watch(c controller.Controller, mgr manager.Manager) error {
	namespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace()}}}
	})
	restarts := predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return restarts(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (restarts(e.ObjectOld) || restarts(e.ObjectNew)) && (e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID())
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return restarts(e.Object) },
	}
	written := predicate.NewPredicateFuncs(r.written)
	written.DeleteFunc = func(event.DeleteEvent) bool { return false }
	err := errors.Join(
		c.Watch(source.Kind[client.Object](mgr.GetCache(), &v1alpha1.ExternalSecret{}, namespace, restarts)),
		c.Watch(source.Kind[client.Object](mgr.GetCache(), resolve.SecretMetadata(), namespace, written)),
	)
	if err != nil || !r.opts.ConfigMapTargets {
		return err
	}
	return c.Watch(source.Kind[client.Object](mgr.GetCache(), target.ConfigMapMetadata(), namespace, written))
}

// restarts reports whether an ExternalSecret restarts workloads, or has a status of that.
func restarts(o client.Object) bool {
	es, ok := o.(*v1alpha1.ExternalSecret)
	return ok && (es.Spec.Target.Restart != nil || es.Status.Restart != nil)
}

// written reports whether an ExternalSecret that restarts workloads writes a target.
func (r *Reconciler) written(o client.Object) bool {
	for name := range target.Marks(o.GetAnnotations()) {
		es := &v1alpha1.ExternalSecret{}
		err := r.cache.Get(context.Background(), types.NamespacedName{Namespace: o.GetNamespace(), Name: name}, es)
		if err == nil && restarts(es) {
			return true
		}
	}
	return false
}
