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
	// promised is what an object was queued for, until it enters, is parked again, or ends its walk.
	promised map[any]any
}

// share is what the walks at one store or of one tenant take, and those that wait for a place.
type share struct {
	busy, promised int
	parked         []parked
}

type parked struct {
	// objectID identifies the object.
	objectID any
	priority int
	queue    func()
	// share is the one at which the object is parked.
	share any
}

// enter takes a place at all of places, or parks the walk at the first that has none.
func (s *shares) enter(places []Place, p parked) bool {
	s.mu.Lock()
	was, needs := s.takePromiseLocked(p.objectID), sharesOf(places)
	for _, share := range needs {
		if sh := s.open[share]; sh != nil {
			sh.parked = slices.DeleteFunc(sh.parked, func(o parked) bool { return o.objectID == p.objectID })
		}
	}
	for _, share := range needs {
		sh := s.open[share]
		if sh == nil || s.fits(share) {
			continue
		}
		p.share = share
		sh.parked = insert(sh.parked, p, func(p parked) int { return p.priority })
		next := s.nextLocked(was)
		s.mu.Unlock()
		call(next)
		return false
	}
	for _, key := range needs {
		if s.open[key] == nil {
			s.open[key] = &share{}
		}
		s.open[key].busy++
	}
	next := s.nextLocked(was)
	s.mu.Unlock()
	call(next)
	return true
}

// takePromiseLocked ends the promise to an object, and returns its share; nil for none.
func (s *shares) takePromiseLocked(objectID any) any {
	was, ok := s.promised[objectID]
	if ok {
		delete(s.promised, objectID)
		s.open[was].promised--
	}
	return was
}

// fits reports whether a share has room for one more walk.
func (s *shares) fits(key any) bool {
	limit := s.store
	if _, ok := key.(tenantShare); ok {
		limit = s.tenant
	}
	return s.open[key].busy+s.open[key].promised < limit
}

// crowded reports whether an object is parked at the share of its own tenant.
func (s *shares) crowded(objectID any, tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := s.open[tenantShare(tenant)]
	return sh != nil && slices.ContainsFunc(sh.parked, func(p parked) bool { return p.objectID == objectID })
}

// split separates what a walk takes of stores from what it takes of its tenant.
func split(needs []any) (stores, rest []any) {
	for _, n := range needs {
		if _, ok := n.(storeShare); ok {
			stores = append(stores, n)
		} else {
			rest = append(rest, n)
		}
	}
	return stores, rest
}

// release frees what a walk has taken, and queues the parked objects for which there is room.
func (s *shares) release(needs []any) {
	var next []func()
	s.mu.Lock()
	for _, share := range needs {
		s.open[share].busy--
		next = append(next, s.nextLocked(share)...)
	}
	s.mu.Unlock()
	call(next)
}

// end queues other parked objects if the walk over an object that was queued for a place has not taken it, for example because
// the object was deleted.
func (s *shares) end(objectID any) {
	s.mu.Lock()
	next := s.nextLocked(s.takePromiseLocked(objectID))
	s.mu.Unlock()
	call(next)
}

// nextLocked returns functions that queue the next objects that are parked at a share, as far as there is room for them.
func (s *shares) nextLocked(key any) (next []func()) {
	sh := s.open[key]
	if sh == nil {
		return nil
	}
	for len(sh.parked) > 0 && s.fits(key) {
		p := sh.parked[0]
		sh.parked = slices.Delete(sh.parked, 0, 1)
		if _, other := s.promised[p.objectID]; !other {
			if s.promised == nil {
				s.promised = map[any]any{}
			}
			s.promised[p.objectID] = key
			sh.promised++
		}
		next = append(next, p.queue)
	}
	if sh.busy == 0 && sh.promised == 0 && len(sh.parked) == 0 {
		delete(s.open, key)
	}
	return next
}

func call(all []func()) {
	for _, f := range all {
		f()
	}
}

// sharesOf returns the shares of places, of each of which a walk takes one place.
func sharesOf(places []Place) (all []any) {
	add := func(share any) {
		if !slices.Contains(all, share) {
			all = append(all, share)
		}
	}
	for _, p := range places {
		if p.Store != "" {
			add(storeShare{p.Store, p.Credentials})
		}
		add(tenantShare(p.Tenant))
	}
	return all
}
