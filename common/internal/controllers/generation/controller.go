// Package generation is the controller of generated values. It asks generators to make values for the objects that use
// them, stores the values in a part in the same namespace, and rotates, renews and revokes them.
package generation

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/proof"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const controllerName = "generated"

// The delay after a failed reconcile doubles from firstRetry to lastRetry.
const firstRetry, lastRetry = time.Second, time.Minute

// Reconciler manages the parts of the objects that use a generator of this module.
type Reconciler struct {
	// client reads live; cache reads from the informers.
	client     client.Client
	cache      client.Reader
	generators *generators
	// contributor is this operator in the role of a generator.
	contributor handoff.Contributor
	board       *presence.Board
	memory      *kit.Memory[request, object]
	events      events.EventRecorder
	now         func() time.Time
}

// request identifies an object that uses generators. With the kind Secret it identifies a part whose annotation names
// no object.
type request struct {
	kind string
	types.NamespacedName
}

// empty returns an empty object of the kind.
func (r request) empty() client.Object {
	if r.kind == pushSecretKind {
		return &v1alpha1.PushSecret{}
	}
	return &v1alpha1.ExternalSecret{}
}

// Setup adds the controller to a manager, if the module has generators. live must not read from a cache. keys prove the
// records of credentials.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, keys *proof.Keys, o setup.Options) error {
	var kinds []provider.Kind
	for _, k := range o.Kinds {
		if k.Generator {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	resolver, err := resolve.NewResolver(mgr.GetCache(), mgr.GetScheme(), kinds, o.ControllerClass, o.Namespaced)
	if err != nil {
		return errors.Wrap(err, "cannot look up the generator Kinds")
	}
	r := &Reconciler{
		client: live, cache: mgr.GetCache(), board: o.Board, memory: newMemory(o.Random),
		generators:  &generators{resolver: resolver, live: resolver.By(live), pool: pool, opts: o, keys: keys},
		contributor: handoff.Contributor{Group: o.Module, Class: o.ControllerClass, Purpose: v1alpha1.PartGenerated},
		events:      mgr.GetEventRecorder("direct-secrets"), now: o.Now,
	}
	walks := kit.NewController(o.Walks, r.Reconcile)
	o.Board.OnChange(func() {
		for _, req := range r.memory.Keys(nil) {
			walks.Enqueue(req, queue.Low)
		}
	})
	c, err := controller.NewTyped(controllerName, mgr, walks.Options(
		workqueue.NewTypedItemExponentialFailureRateLimiter[request](firstRetry, lastRetry),
		func(req *request) logr.Logger {
			log := mgr.GetLogger().WithValues("controller", controllerName)
			if req != nil {
				log = log.WithValues("kind", req.kind, "namespace", req.Namespace, "name", req.Name)
			}
			return log
		}))
	if err != nil {
		return errors.Wrap(err, "cannot create the controller")
	}
	return r.start(c, mgr.GetCache(), walks.EnqueueAfter)
}
