// Package fanout is the loop of cluster objects that make the same object in many namespaces.
package fanout

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// workers is how many namespaces are worked on at once.
const workers = 16

// The delay after a reconcile that failed doubles from the first to the last.
const firstRetry, lastRetry = time.Second, time.Minute

// ownerIndex is the cache index from a parent, by its uid, to its children.
const ownerIndex = "direct-secrets.io/fan-out"

// Duties say whether this operator is the one that does what belongs to no provider.
type Duties interface {
	Held() bool
	// OnHeld has f called whenever the operator becomes the one.
	OnHeld(f func())
}

// scope is what a request is about.
type scope int

const (
	// everything: all parents are looked at anew.
	everything scope = iota
	// wholeParent: one parent, its namespaces and its status.
	wholeParent
	// oneNamespace: what one parent wants of one namespace.
	oneNamespace
)

// request is what a worker has to do.
type request struct {
	scope             scope
	parent, namespace string
}

func aboutAll() request                 { return request{} }
func aboutParent(parent string) request { return request{scope: wholeParent, parent: parent} }
func aboutNamespace(parent, namespace string) request {
	return request{oneNamespace, parent, namespace}
}

// What only the fan-out asks for, also of children, is among the rights of who serves all namespaces: no other
// operator runs it.
// +kubebuilder:rbac:groups=direct-secrets.io,resources=clusterexternalsecrets;clusterpushsecrets,verbs=list;watch,roleName=cluster
// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

// Setup adds the loops to a manager, one for each cluster Kind. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, duties Duties) error {
	for _, k := range []kinds{externalSecrets(), pushSecrets()} {
		if err := setup(mgr, live, duties, k); err != nil {
			return errors.Wrapf(err, "cannot set up the %s loop", k.parent)
		}
	}
	return nil
}

func setup(mgr manager.Manager, live client.Client, duties Duties, k kinds) error {
	gvk, err := apiutil.GVKForObject(k.newParent(), mgr.GetScheme())
	if err != nil {
		return err
	}
	ledger, err := metrics.New(mgr, k.parent, metrics.While(duties.Held), metrics.Following(k.newParent()))
	if err != nil {
		return errors.Wrap(err, "cannot add the ledger")
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
	yes, no := true, false
	owner := metav1.OwnerReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Controller: &yes, BlockOwnerDeletion: &no}
	var q requests
	w := &watches{kinds: k, cache: mgr.GetCache(), duties: duties, board: &board{}}
	w.parents = &parents{kinds: k, client: live, cache: mgr.GetCache()}
	c, err := controller.NewTyped(k.controller, mgr, controller.TypedOptions[request]{
		Reconciler: &reconciler{
			parents: w.parents, duties: duties, ledger: ledger, board: w.board, now: time.Now,
			children: &children{kinds: k, client: live, cache: mgr.GetCache(), owner: owner, parents: w.parents, now: time.Now},
			add:      func(req request, priority int, after time.Duration) { queue.AddTo(q, priority, after, req) },
		},
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[request](firstRetry, lastRetry),
		NewQueue: func(name string, l workqueue.TypedRateLimiter[request]) requests {
			q = queue.New(name, l)
			return q
		},
		LogConstructor: logger(mgr.GetLogger().WithValues("controller", k.controller)),
	})
	if err != nil {
		return errors.Wrap(err, "cannot make the controller")
	}
	return w.start(c)
}

// logger returns loggers that name what a request is about.
func logger(base logr.Logger) func(*request) logr.Logger {
	return func(req *request) logr.Logger {
		if req == nil {
			return base
		}
		return base.WithValues("object", klog.KRef(req.namespace, req.parent), "namespace", req.namespace, "name", req.parent)
	}
}
