// Package storehealth is the controller that validates stores. It connects, checks, and writes the Ready condition.
// The other controllers hold their reads and pushes by that condition (gatingPolicy).
package storehealth

import (
	"context"
	"maps"
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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/metrics"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/refresh"
	"github.com/direct-secrets/direct-secrets/common/internal/setup"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Board knows the running operators, as presence.Board does.
type Board interface {
	Self() presence.Member
	Serving(ref *v1alpha1.StoreRef, namespace string) []presence.Member
	MissingClass(ref *v1alpha1.StoreRef, class, namespace string, since time.Time) (missing bool, wait time.Duration)
}

// Suspects triggers the validation of stores that refuse reads.
type Suspects struct {
	bus *refresh.Bus

	mu sync.Mutex
	// last is the time of the last validation that Suspects has triggered, by store.
	// Bound: one per store; those older than suspectEvery are removed.
	last map[string]time.Time
}

// NewSuspects returns Suspects that publish to a bus.
func NewSuspects(bus *refresh.Bus) *Suspects {
	return &Suspects{bus: bus, last: map[string]time.Time{}}
}

// suspectEvery is the minimum time between two validations of a store because of refused reads.
const suspectEvery = time.Minute

// Suspect triggers the validation of a store that has refused a read. If its login fails, no other read needs to be
// tried.
func (s *Suspects) Suspect(k provider.Kind, key types.NamespacedName) {
	if s.lately(k.GoName()+"/"+key.String(), time.Now()) {
		return
	}
	s.bus.Publish(context.Background(), refresh.Event{Kind: k, Store: key})
}

// lately reports whether Suspects has triggered a validation of a store within suspectEvery. If not, it records one
// now.
func (s *Suspects) lately(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.last, func(_ string, at time.Time) bool { return now.Sub(at) >= suspectEvery })
	if _, ok := s.last[id]; ok {
		return true
	}
	s.last[id] = now
	return false
}

// newMemory returns an empty memory. It closes the clients of a deleted store.
func newMemory(pool *dispatch.Pool) *kit.Memory[types.NamespacedName, validated] {
	return &kit.Memory[types.NamespacedName, validated]{
		New:  func(uid types.UID, _ *validated) *validated { return &validated{uid: uid} },
		Drop: func(v *validated) { pool.Drop(v.uid) },
	}
}

// observedElsewhere holds for a store of another class that an operator has observed.
func observedElsewhere(class string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(provider.Object)
		is, ok2 := e.ObjectNew.(provider.Object)
		return ok && ok2 && provider.SourceSpec(is).Controller != class && was.StoreStatus().ObservedGeneration != is.StoreStatus().ObservedGeneration
	}}
}

// missedMore holds for an event source that has missed a change.
func missedMore() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(provider.EventSourceObject)
		is, ok2 := e.ObjectNew.(provider.EventSourceObject)
		return ok && ok2 && !was.Received().LastMissedTime.Equal(is.Received().LastMissedTime)
	}}
}

// Setup adds a controller for each Kind to a manager. live must not read from a cache.
func Setup(mgr manager.Manager, live client.Client, pool *dispatch.Pool, o setup.Options) error {
	for _, k := range o.Kinds {
		if k.Cluster && o.Namespaced {
			continue // Its informer would never sync.
		}
		ledger, err := metrics.New(mgr, k.GoName(), metrics.OfStores(), metrics.Following(k.New()))
		if err != nil {
			return errors.Wrap(err, "cannot add the collector of object metrics")
		}
		gvk, err := apiutil.GVKForObject(k.New(), mgr.GetScheme())
		if err != nil {
			return errors.Wrap(err, "cannot name the Kind")
		}
		r := &Reconciler{
			client: live, cache: mgr.GetCache(), pool: pool, kind: k, opts: o, board: o.Board, classes: &o.Board.Classes, ledger: ledger,
			anyStore: v1alpha1.StoreRef{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind},
			events:   mgr.GetEventRecorder("direct-secrets"),
			known:    newMemory(pool),
		}
		walks := kit.NewController(o.Walks, r.Reconcile)
		c, err := controller.New("store-"+strings.ToLower(k.GoName()), mgr, walks.Options(ratelimiter.NewController(), nil))
		if err != nil {
			return errors.Wrap(err, "cannot create the controller")
		}
		err = c.Watch(source.Kind[client.Object](mgr.GetCache(), k.New(), kit.Changes(walks.Interrupt), predicate.Or[client.Object](kit.Respecified(), observedElsewhere(o.ControllerClass), missedMore())))
		if err != nil {
			return errors.Wrapf(err, "cannot watch %s", k.GoName())
		}
		refresh.On(o.Bus, func(_ context.Context, e refresh.Event) {
			if req := (reconcile.Request{NamespacedName: e.Store}); e.Namespace == "" && e.Kind.GoName() == k.GoName() {
				walks.Interrupt(req) // The cause of a slow check may be fixed.
				walks.Enqueue(req, queue.High)
			}
		})
	}
	return nil
}
