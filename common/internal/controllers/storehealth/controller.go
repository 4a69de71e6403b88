// Package storehealth is the controller that validates stores: it connects, checks, and writes the Ready condition that
// opens and closes the gate of the other controllers.
package storehealth

import (
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// workers is the number of stores of a Kind that are validated at once. A check that hangs holds one until its
// deadline; each costs memory, and there are as many for every Kind.
const workers = 8

// Options of the loop.
type Options struct {
	// Kinds of stores that the module serves.
	Kinds []provider.Kind
	// ControllerClass is the class of stores that this operator serves.
	ControllerClass string
	// Namespaced is true for an operator that serves chosen namespaces only.
	Namespaced bool
	// CheckTimeout is the deadline of one validation.
	CheckTimeout time.Duration
	// Changed brings the news that a credential of a store has changed.
	Changed *Changed
	// Board knows the other operators.
	Board Board
}

// A Board says which operators run, as presence.Board does.
type Board interface {
	Self() presence.Member
	Serving(ref *v1alpha1.StoreRef, namespace string) []presence.Member
	MissingClass(ref *v1alpha1.StoreRef, class, namespace string, since time.Time) (missing bool, wait time.Duration)
}

// Changed carries stores that must be validated again from the connection pool to the loop.
type Changed struct {
	mu   sync.Mutex
	subs map[string]chan event.GenericEvent
	// suspected is when a store was suspected last.
	suspected map[string]time.Time
}

// suspectEvery is the least time between two validations for which refused reads are the reason.
const suspectEvery = time.Minute

// Suspect asks for the validation of a store that has refused a read: its login may be at fault, and
// then no other read need be tried.
func (c *Changed) Suspect(k provider.Kind, key types.NamespacedName) {
	id, now := k.GoName()+"/"+key.String(), time.Now()
	c.mu.Lock()
	for old, at := range c.suspected {
		if now.Sub(at) >= suspectEvery {
			delete(c.suspected, old)
		}
	}
	_, lately := c.suspected[id]
	if !lately {
		if c.suspected == nil {
			c.suspected = map[string]time.Time{}
		}
		c.suspected[id] = now
	}
	c.mu.Unlock()
	if !lately {
		c.Notify(k, key)
	}
}

// Notify asks for the validation of a store.
func (c *Changed) Notify(k provider.Kind, key types.NamespacedName) {
	o := k.New()
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	c.channel(k) <- event.GenericEvent{Object: o}
}

func (c *Changed) channel(k provider.Kind) chan event.GenericEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs == nil {
		c.subs = map[string]chan event.GenericEvent{}
	}
	if c.subs[k.GoName()] == nil {
		c.subs[k.GoName()] = make(chan event.GenericEvent, 1024)
	}
	return c.subs[k.GoName()]
}

// Setup adds a loop for each Kind to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, o Options) error {
	for _, k := range o.Kinds {
		if k.Cluster && o.Namespaced {
			continue // Its informer would never sync.
		}
		ledger, err := metrics.New(mgr, k.GoName(), metrics.OfStores(), metrics.Following(k.New()))
		if err != nil {
			return errors.Wrap(err, "cannot add the ledger")
		}
		gvk, err := apiutil.GVKForObject(k.New(), mgr.GetScheme())
		if err != nil {
			return errors.Wrap(err, "cannot name the Kind")
		}
		r := &Reconciler{
			client: live, cache: mgr.GetCache(), pool: pool, kind: k, opts: o, ledger: ledger,
			anyStore: v1alpha1.StoreRef{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind},
			events:   mgr.GetEventRecorder("direct-secrets"),
			backoff:  ratelimiter.NewController(),
			known:    map[types.NamespacedName]*validated{},
		}
		c, err := controller.New("store-"+strings.ToLower(k.GoName()), mgr, controller.Options{
			Reconciler:              r,
			MaxConcurrentReconciles: workers,
			RateLimiter:             ratelimiter.NewController(),
		})
		if err != nil {
			return errors.Wrap(err, "cannot make the controller")
		}
		enqueue := &handler.EnqueueRequestForObject{}
		err = c.Watch(source.Kind[client.Object](mgr.GetCache(), k.New(), enqueue, predicate.GenerationChangedPredicate{}))
		if err != nil {
			return errors.Wrapf(err, "cannot watch %s", k.GoName())
		}
		if err := c.Watch(source.Channel(o.Changed.channel(k), enqueue)); err != nil {
			return errors.Wrapf(err, "cannot watch credentials of %s", k.GoName())
		}
	}
	return nil
}
