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
}

// share is the walks at one store or of one tenant, and those that wait for a place.
type share struct {
	busy   int
	parked []parked
}

type parked struct {
	// who identifies the object.
	who      any
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
		sh.parked = slices.DeleteFunc(sh.parked, func(o parked) bool { return o.who == p.who })
		if sh.busy < s.limit(key) {
			continue
		}
		i, _ := slices.BinarySearchFunc(sh.parked, p, func(e, p parked) int {
			if e.priority >= p.priority {
				return -1
			}
			return 1
		})
		sh.parked = slices.Insert(sh.parked, i, p)
		return false
	}
	for _, key := range keysOf(places) {
		if s.open[key] == nil {
			s.open[key] = &share{}
		}
		s.open[key].busy++
	}
	return true
}

// leave frees the places, and queues one parked object for each.
func (s *shares) leave(places []Place) {
	var next []func()
	s.mu.Lock()
	for _, key := range keysOf(places) {
		sh := s.open[key]
		sh.busy--
		if len(sh.parked) > 0 {
			next = append(next, sh.parked[0].queue)
			sh.parked = slices.Delete(sh.parked, 0, 1)
		}
		if sh.busy == 0 && len(sh.parked) == 0 {
			delete(s.open, key)
		}
	}
	s.mu.Unlock()
	for _, queue := range next {
		queue()
	}
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
