package kit

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// A Place is what a walk waits for: a store, for the objects of one namespace.
type Place struct {
	// Store is empty for a walk that waits for its own tenant.
	Store types.UID
	// Credentials is the namespace whose credentials the store uses; empty for those of the store.
	Credentials string
	// Tenant is the namespace of the object.
	Tenant string
}

// shares bound how many walks are at one store, and at the stores that one namespace uses. A Place without tenant is what the objects
// of all namespaces share at a store, and one without store what a tenant has.
type shares struct {
	store, tenant int
	// waits counts an object that waits for a place of its tenant, until it calls done.
	waits func(tenant string) (done func())

	mu sync.Mutex
	// used counts the walks, and held are the places of an object: those that its walk has taken, and one for which it was queued.
	// Bound: the places of the walks in flight.
	used map[Place]int
	// Bound: one per walk in flight, or object that is queued for a free place.
	held map[any][]Place
	// waiting are the parked objects for each full share, in order, and parked is where one is.
	// Bound: one per full share.
	waiting map[Place][]parked
	// Bound: one per object.
	parked map[any]Place
}

type parked struct {
	// object identifies the object among those of all controllers.
	object   any
	priority int
	queue    func()
	// done ends its wait for its own tenant.
	done func()
}

func newShares(inFlight int, waits func(tenant string) (done func())) *shares {
	return &shares{
		waits: waits, store: max(1, inFlight/8), tenant: max(1, inFlight/4),
		used: map[Place]int{}, held: map[any][]Place{}, waiting: map[Place][]parked{}, parked: map[any]Place{},
	}
}

// enter takes a place at all of places, or parks the object at the first that has none.
func (s *shares) enter(o parked, places []Place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unparkLocked(o.object)
	for _, p := range sharesOf(places) {
		most := s.store
		if p.Store == "" {
			most = s.tenant
		}
		switch {
		case slices.Contains(s.held[o.object], p):
		case s.used[p] < most:
			s.used[p]++
			s.held[o.object] = append(s.held[o.object], p)
		default:
			if o.done = func() {}; p.Store == "" {
				o.done = s.waits(p.Tenant)
			}
			i, _ := slices.BinarySearchFunc(s.waiting[p], o.priority, func(w parked, priority int) int {
				if w.priority >= priority {
					return -1
				}
				return 1
			})
			s.waiting[p] = slices.Insert(s.waiting[p], i, o)
			s.parked[o.object] = p
			s.releaseLocked(o.object, false)
			return false
		}
	}
	return true
}

// release gives back the places of an object: all, or those at stores. Each goes to the next parked object, which is queued.
func (s *shares) release(object any, onlyStores bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(object, onlyStores)
}

func (s *shares) releaseLocked(object any, onlyStores bool) {
	held := s.held[object]
	delete(s.held, object)
	for _, p := range held {
		if onlyStores && p.Store == "" {
			s.held[object] = append(s.held[object], p)
			continue
		}
		if len(s.waiting[p]) > 0 {
			next := s.waiting[p][0]
			s.unparkLocked(next.object)
			s.held[next.object] = append(s.held[next.object], p)
			next.queue()
		} else if s.used[p]--; s.used[p] == 0 {
			delete(s.used, p)
		}
	}
}

// end ends what an object has and waits for, because its walk has ended otherwise.
func (s *shares) end(object any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unparkLocked(object)
	s.releaseLocked(object, false)
}

func (s *shares) unparkLocked(object any) {
	p, ok := s.parked[object]
	if !ok {
		return
	}
	delete(s.parked, object)
	i := slices.IndexFunc(s.waiting[p], func(o parked) bool { return o.object == object })
	s.waiting[p][i].done()
	s.waiting[p] = slices.Delete(s.waiting[p], i, i+1)
	if len(s.waiting[p]) == 0 {
		delete(s.waiting, p)
	}
}

// sharesOf returns the shares of places, of each of which a walk takes one place.
func sharesOf(places []Place) (all []Place) {
	for _, p := range places {
		for _, share := range []Place{{Store: p.Store, Credentials: p.Credentials}, {Tenant: p.Tenant}} {
			if share != (Place{}) && !slices.Contains(all, share) {
				all = append(all, share)
			}
		}
	}
	return all
}
