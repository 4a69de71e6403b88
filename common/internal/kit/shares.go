package kit

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// A Place is what a walk waits for: a store, for the objects of one namespace.
type Place struct {
	Store types.UID
	// Credentials is the namespace whose credentials the store uses; empty for those of the store.
	Credentials string
	// Tenant is the namespace of the object.
	Tenant string
}

// storeShare and tenantShare identify the shares of a place.
type storeShare struct {
	store       types.UID
	credentials string
}

type tenantShare string

// shares bound how many walks are at one store, and at the stores that one namespace uses.
type shares struct {
	store, tenant int

	mu   sync.Mutex
	open map[any]*share
	// woken are the shares for which objects were queued, by object, until they enter, park again, or end their walk.
	woken map[any]any
}

// share is the walks at one store or of one tenant, and those that wait for a place.
type share struct {
	busy   int
	parked []parked
}

type parked struct {
	// objectID identifies the object.
	objectID any
	priority int
	queue    func()
}

// enter takes a place at all of places, or parks the walk at the first that has none.
func (s *shares) enter(places []Place, p parked) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keysOf(places) {
		sh := s.open[key]
		if sh == nil {
			continue
		}
		sh.parked = slices.DeleteFunc(sh.parked, func(o parked) bool { return o.objectID == p.objectID })
		if sh.busy < s.limit(key) {
			continue
		}
		sh.parked = insert(sh.parked, p, func(p parked) int { return p.priority })
		if s.woken[p.objectID] == key {
			delete(s.woken, p.objectID)
		}
		return false
	}
	for _, key := range keysOf(places) {
		if s.woken[p.objectID] == key {
			delete(s.woken, p.objectID)
		}
		if s.open[key] == nil {
			s.open[key] = &share{}
		}
		s.open[key].busy++
	}
	return true
}

// crowded reports whether an object is parked at the share of its own tenant.
func (s *shares) crowded(objectID any, tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.open[tenantShare(tenant)]
	return sh != nil && slices.ContainsFunc(sh.parked, func(p parked) bool { return p.objectID == objectID })
}

// release frees the places, and queues one parked object for each.
func (s *shares) release(places []Place) {
	var next []func()
	s.mu.Lock()
	for _, key := range keysOf(places) {
		s.open[key].busy--
		next = append(next, s.nextLocked(key))
	}
	s.mu.Unlock()
	for _, queue := range next {
		queue()
	}
}

// end queues another parked object if the walk over who was queued for a place and has not taken it, for example because
// the object was deleted.
func (s *shares) end(objectID any) {
	s.mu.Lock()
	key, ok := s.woken[objectID]
	delete(s.woken, objectID)
	queue := func() {}
	if ok {
		queue = s.nextLocked(key)
	}
	s.mu.Unlock()
	queue()
}

// nextLocked returns a function that queues the next object that is parked at a share.
func (s *shares) nextLocked(key any) func() {
	sh := s.open[key]
	if sh == nil || len(sh.parked) == 0 {
		if sh != nil && sh.busy == 0 {
			delete(s.open, key)
		}
		return func() {}
	}
	next := sh.parked[0]
	sh.parked = slices.Delete(sh.parked, 0, 1)
	if s.woken == nil {
		s.woken = map[any]any{}
	}
	s.woken[next.objectID] = key
	return next.queue
}

func (s *shares) limit(key any) int {
	if _, ok := key.(tenantShare); ok {
		return s.tenant
	}
	return s.store
}

// keysOf returns the shares of places, each once.
func keysOf(places []Place) []any {
	var keys []any
	add := func(key any) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, p := range places {
		add(storeShare{p.Store, p.Credentials})
		add(tenantShare(p.Tenant))
	}
	return keys
}
