// Package generated is the controller of generated values: it has generators make values for the objects that use them,
// stores the values in a part in the same namespace, and has them rotated, renewed and revoked.
package generated

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/concurrency"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const controllerName = "generated"

// releaseEvery is the pace at which objects are let go when their generator becomes ready.
const releaseEvery = time.Second / 50

// The delay after a reconcile that failed doubles from the first to the last.
const firstRetry, lastRetry = time.Second, time.Minute

// Options of the loop.
type Options struct {
	// Module is the API group of the module.
	Module string
	// Kinds of stores that the module serves, generators among them.
	Kinds []provider.Kind
	// Concurrency is the number of workers.
	Concurrency int
	// Board knows the other operators.
	Board *presence.Board
	// ControllerClass is the class of generators that this operator serves.
	ControllerClass string
	// Namespaced is true for an operator that serves chosen namespaces only: it has no right to read
	// cluster Kinds.
	Namespaced bool
	// CallTimeout is the deadline of one call to a generator.
	CallTimeout time.Duration
	// Suspect is told of a generator that was refused. Default: nobody.
	Suspect func(k provider.Kind, s types.NamespacedName)
	// Random returns numbers in [0, 1) for jitter. Default: rand.Float64.
	Random func() float64
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Reconciler keeps the parts of the objects that use a generator of this module.
type Reconciler struct {
	// client is live, cache is not.
	client client.Client
	cache  client.Reader
	events events.EventRecorder
	log    logr.Logger
	pool   *dispatch.Pool
	routes *resolve.Routes
	rules  resolve.Rulebook
	lanes  concurrency.Lanes[request]
	opts   Options
	// wake has an object reconciled again, apart from any event.
	wake func(req request)

	mu      sync.Mutex
	objects map[request]*object
}

// request names an object that uses generators; or, with the kind Secret, a part that tells no such object.
type request struct {
	kind string
	types.NamespacedName
}

// Setup adds the loop to a manager, if the module has generators. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, o Options) error {
	var kinds []provider.Kind
	for _, k := range o.Kinds {
		if k.Generator {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	routes, err := resolve.New(mgr.GetCache(), mgr.GetScheme(), kinds)
	if err != nil {
		return errors.Wrap(err, "cannot route generator Kinds")
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Suspect == nil {
		o.Suspect = func(provider.Kind, types.NamespacedName) {}
	}
	r := &Reconciler{
		client: live, cache: mgr.GetCache(), events: mgr.GetEventRecorder("direct-secrets"), log: mgr.GetLogger(),
		pool: pool, routes: routes, opts: o, objects: map[request]*object{},
	}
	c, err := controller.NewTyped(controllerName, mgr, controller.TypedOptions[request]{
		Reconciler:              r,
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[request](firstRetry, lastRetry),
		NewQueue: func(name string, l workqueue.TypedRateLimiter[request]) requests {
			return queue.New(name, l)
		},
		LogConstructor: func(req *request) logr.Logger {
			log := mgr.GetLogger().WithValues("controller", controllerName)
			if req != nil {
				log = log.WithValues("kind", req.kind, "namespace", req.Namespace, "name", req.Name)
			}
			return log
		},
	})
	if err != nil {
		return errors.Wrap(err, "cannot make the controller")
	}
	return r.watch(c, mgr)
}

// +kubebuilder:rbac:groups=direct-secrets.io,resources=externalsecrets;pushsecrets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=list;watch
// Labels of namespaces say which of them a cluster generator admits.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=list;watch,roleName=cluster

func (r *Reconciler) watch(c controller.TypedController[request], mgr manager.Manager) error {
	kind := func(o client.Object, h handler.TypedEventHandler[client.Object, request]) source.TypedSource[request] {
		return source.TypedKind(mgr.GetCache(), o, h)
	}
	sources := []source.TypedSource[request]{
		source.TypedFunc[request](r.follow),
		kind(&v1alpha1.ExternalSecret{}, r.objectEvents()),
		kind(&v1alpha1.PushSecret{}, r.objectEvents()),
		kind(resolve.SecretMetadata(), r.secretEvents()),
	}
	byLabels := false
	for _, k := range r.routes.Kinds {
		if k.Cluster && r.opts.Namespaced {
			continue // Its informer would never sync.
		}
		byLabels = byLabels || k.Cluster
		sources = append(sources, kind(k.New(), r.generatorEvents(k)))
	}
	if byLabels {
		sources = append(sources, kind(resolve.NamespaceMetadata(), r.namespaceEvents()))
	}
	for _, s := range sources {
		if err := c.Watch(s); err != nil {
			return errors.Wrap(err, "cannot watch")
		}
	}
	return nil
}
