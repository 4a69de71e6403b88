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
	// Bytes are the values that the walk holds while it waits.
	Bytes int64
}

// maxHeld is how many bytes the walks of one tenant may hold while they wait. A walk that holds more waits alone.
const maxHeld = 8 << 20

// storeShare, tenantShare and heldShare identify the shares of a place.
type storeShare struct {
	store       types.UID
	credentials string
}

type tenantShare string

type heldShare string

// shares bound how many walks are at one store, and at the stores that one namespace uses, and the bytes that they hold.
type shares struct {
	store, tenant int

	mu   sync.Mutex
	open map[any]*share
	// promised is what an object was queued for, until it enters, is parked again, or ends its walk.
	promised map[any]need
}

// share is what the walks at one store or of one tenant take, and those that wait for a place.
type share struct {
	busy, promised int64
	parked         []parked
}

// need is what a walk takes of a share.
type need struct {
	share any
	n     int64
}

type parked struct {
	// objectID identifies the object.
	objectID any
	priority int
	queue    func()
	need     need
}

// enter takes a place at all of places, or parks the walk at the first that has none.
func (s *shares) enter(places []Place, p parked) bool {
	s.mu.Lock()
	was, needs := s.takePromiseLocked(p.objectID), needsOf(places)
	for _, need := range needs {
		if sh := s.open[need.share]; sh != nil {
			sh.parked = slices.DeleteFunc(sh.parked, func(o parked) bool { return o.objectID == p.objectID })
		}
	}
	for _, need := range needs {
		sh := s.open[need.share]
		if sh == nil || s.fits(sh, need) {
			continue
		}
		p.need = need
		sh.parked = insert(sh.parked, p, func(p parked) int { return p.priority })
		next := s.nextLocked(was.share)
		s.mu.Unlock()
		call(next)
		return false
	}
	for _, need := range needs {
		if s.open[need.share] == nil {
			s.open[need.share] = &share{}
		}
		s.open[need.share].busy += need.n
	}
	next := s.nextLocked(was.share)
	s.mu.Unlock()
	call(next)
	return true
}

// takePromiseLocked ends the promise to an object, and returns it; the zero value for none.
func (s *shares) takePromiseLocked(objectID any) need {
	was, ok := s.promised[objectID]
	if ok {
		delete(s.promised, objectID)
		s.open[was.share].promised -= was.n
	}
	return was
}

// fits reports whether a share has room. One walk that needs more than the limit has it alone.
func (s *shares) fits(sh *share, n need) bool {
	taken := sh.busy + sh.promised
	return taken == 0 || taken+n.n <= s.limit(n.share)
}

// crowded reports whether an object is parked at a share of its own tenant.
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

// split separates what a walk takes of stores from what it takes of its tenant.
func split(needs []need) (stores, rest []need) {
	for _, n := range needs {
		if _, ok := n.share.(storeShare); ok {
			stores = append(stores, n)
		} else {
			rest = append(rest, n)
		}
	}
	return stores, rest
}

// release frees what a walk has taken, and queues the parked objects for which there is room.
func (s *shares) release(needs []need) {
	var next []func()
	s.mu.Lock()
	for _, need := range needs {
		s.open[need.share].busy -= need.n
		next = append(next, s.nextLocked(need.share)...)
	}
	s.mu.Unlock()
	call(next)
}

// end queues other parked objects if the walk over an object that was queued for a place has not taken it, for example because
// the object was deleted.
func (s *shares) end(objectID any) {
	s.mu.Lock()
	next := s.nextLocked(s.takePromiseLocked(objectID).share)
	s.mu.Unlock()
	call(next)
}

// nextLocked returns functions that queue the next objects that are parked at a share, as far as there is room for them.
func (s *shares) nextLocked(key any) (next []func()) {
	sh := s.open[key]
	if sh == nil {
		return nil
	}
	for len(sh.parked) > 0 && s.fits(sh, sh.parked[0].need) {
		p := sh.parked[0]
		sh.parked = slices.Delete(sh.parked, 0, 1)
		if _, other := s.promised[p.objectID]; !other {
			if s.promised == nil {
				s.promised = map[any]need{}
			}
			s.promised[p.objectID] = p.need
			sh.promised += p.need.n
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

func (s *shares) limit(key any) int64 {
	switch key.(type) {
	case tenantShare:
		return int64(s.tenant)
	case heldShare:
		return maxHeld
	}
	return int64(s.store)
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
		if p.Store != "" {
			add(storeShare{p.Store, p.Credentials}, 1)
		}
		add(tenantShare(p.Tenant), 1)
		add(heldShare(p.Tenant), p.Bytes)
	}
	return needs
}
