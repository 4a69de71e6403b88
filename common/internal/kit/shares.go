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
	// Bytes are the values that the walk holds while it waits.
	Bytes int64
}

// maxHeld is how many bytes the walks of one tenant may hold while they wait. A walk that holds more waits alone. perWalk is the
// size for which the end of a wait queues one parked object.
const maxHeld, perWalk = 8 << 20, 64 << 10

// storeShare and tenantShare identify the shares of a place.
type storeShare struct {
	store       types.UID
	credentials string
}

type tenantShare string

type heldShare string

// shares bound how many walks are at one store, and at the stores that one namespace uses.
type shares struct {
	store, tenant int

	mu   sync.Mutex
	open map[any]*share
	// woken are the shares for which objects were queued, by object, until they enter, park again, or end their walk.
	woken map[any]any
}

// share is the walks at one store or of one tenant, or the bytes that they hold, and the walks that wait for a place.
type share struct {
	busy   int64
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
	needs := needsOf(places)
	for _, need := range needs {
		key := need.share
		sh := s.open[key]
		if sh == nil {
			continue
		}
		sh.parked = slices.DeleteFunc(sh.parked, func(o parked) bool { return o.objectID == p.objectID })
		if sh.busy == 0 || sh.busy+need.n <= s.limit(key) {
			continue
		}
		sh.parked = insert(sh.parked, p, func(p parked) int { return p.priority })
		if s.woken[p.objectID] == key {
			delete(s.woken, p.objectID)
		}
		return false
	}
	for _, need := range needs {
		if s.woken[p.objectID] == need.share {
			delete(s.woken, p.objectID)
		}
		if s.open[need.share] == nil {
			s.open[need.share] = &share{}
		}
		s.open[need.share].busy += need.n
	}
	return true
}

// crowded reports whether an object is parked at the share of its own tenant.
func (s *shares) crowded(objectID any, tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []any{tenantShare(tenant), heldShare(tenant)} {
		if sh := s.open[key]; sh != nil && slices.ContainsFunc(sh.parked, func(p parked) bool { return p.objectID == objectID }) {
			return true
		}
	}
	return false
}

// release frees the places. It queues one parked object for each share, and for the bytes of a tenant as many as there may be room
// for.
func (s *shares) release(places []Place) {
	var next []func()
	s.mu.Lock()
	for _, need := range needsOf(places) {
		s.open[need.share].busy -= need.n
		for n := need.n; n > 0; n -= perWalk {
			next = append(next, s.nextLocked(need.share))
		}
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

func (s *shares) limit(key any) int64 {
	switch key.(type) {
	case tenantShare:
		return int64(s.tenant)
	case heldShare:
		return maxHeld
	}
	return int64(s.store)
}

// need is what a walk takes of a share.
type need struct {
	share any
	n     int64
}

// needsOf returns what a walk takes of the shares of places. It takes one place of each share, and its bytes.
func needsOf(places []Place) []need {
	var needs []need
	add := func(share any, n int64) {
		if n > 0 && !slices.ContainsFunc(needs, func(o need) bool { return o.share == share }) {
			needs = append(needs, need{share, n})
		}
	}
	for _, p := range places {
		add(storeShare{p.Store, p.Credentials}, 1)
		add(tenantShare(p.Tenant), 1)
		add(heldShare(p.Tenant), p.Bytes)
	}
	return needs
}
