// Package fanout is the controller of cluster objects that create the same object in many namespaces.
package fanout

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
)

// firstRetry and lastRetry are the first and the maximum delay after a failed reconcile; the delay doubles.
const firstRetry, lastRetry = time.Second, time.Minute

// ownerIndex is the cache index from a parent, by its uid, to its children.
const ownerIndex = "direct-secrets.io/fan-out"

// Duties report whether this operator holds the shared duties.
type Duties interface {
	Held() bool
	// OnHeld registers a function that is called whenever this operator starts to hold the duties.
	OnHeld(f func())
}

// request is a task of a worker: one parent in one namespace; without a namespace, one parent with all its namespaces and
// its status; without a parent, all parents.
type request struct{ parent, namespace string }

// Permissions that only the fan-out needs are in the role of operators that serve all namespaces: no other operator
// runs it.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets;clusterpushsecrets,verbs=list;watch,roleName=cluster
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

// Setup adds one controller for each cluster Kind to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, duties Duties, bounds *kit.Walks) error {
	for _, k := range []kinds{externalSecrets(), pushSecrets()} {
		if err := setup(mgr, live, duties, bounds, k); err != nil {
			return errors.Wrapf(err, "cannot set up the controller of %s objects", k.parent)
		}
	}
	return nil
}

func setup(mgr manager.Manager, live client.Client, duties Duties, bounds *kit.Walks, k kinds) error {
	ledger, err := metrics.New(mgr, k.parent, metrics.While(duties.Held), metrics.Following(k.newParent()))
	if err != nil {
		return errors.Wrap(err, "cannot add the collector of object metrics")
	}
	err = mgr.GetFieldIndexer().IndexField(context.Background(), k.newChild(), ownerIndex, func(o client.Object) []string {
		if ref := k.parentOf(o); ref != nil {
			return []string{string(ref.UID)}
		}
		return nil
	})
	if err != nil {
		return errors.Wrapf(err, "cannot index objects of kind %s by owner", k.child)
	}
	r := &reconciler{
		kinds: k, client: live, cache: mgr.GetCache(), events: mgr.GetEventRecorder("direct-secrets"),
		duties: duties, ledger: ledger, board: &board{}, now: time.Now,
	}
	walks := kit.NewController(bounds, r.Reconcile)
	r.add = walks.EnqueueAfter
	c, err := controller.NewTyped(k.controller, mgr, walks.Options(
		workqueue.NewTypedItemExponentialFailureRateLimiter[request](firstRetry, lastRetry),
		logger(mgr.GetLogger().WithValues("controller", k.controller))))
	if err != nil {
		return errors.Wrap(err, "cannot create the controller")
	}
	return r.start(c, mgr.GetCache())
}

// logger returns loggers with the subject of a request.
func logger(base logr.Logger) func(*request) logr.Logger {
	return func(req *request) logr.Logger {
		if req == nil {
			return base
		}
		return base.WithValues("object", klog.KRef(req.namespace, req.parent), "namespace", req.namespace, "name", req.parent)
	}
}
