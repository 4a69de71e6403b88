package kit

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory is what a controller remembers of its objects between two walks. Losing it does no harm: it is empty after a
// restart. It is safe for concurrent use; each M guards the fields that event handlers use, too.
type Memory[K comparable, M any] struct {
	// New returns the memory of an object with a uid. old is that of an object with this key that was deleted and created
	// again; nil if there was none. New may be nil: then a zero M.
	New func(uid types.UID, old *M) *M
	// Drop is called with each memory that is dropped. It may be nil.
	Drop func(*M)

	mu sync.Mutex
	// Bound: one per object.
	m map[K]incarnation[M]
}

// incarnation is an object under one uid.
type incarnation[M any] struct {
	uid    types.UID
	memory *M
}

// Get returns the memory of an object. replaced is true if there was one of another object with this key.
func (m *Memory[K, M]) Get(key K, uid types.UID) (memory *M, replaced bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, replaced := m.m[key]
	if replaced && old.uid == uid {
		return old.memory, false
	}
	m.drop(old.memory)
	if m.m == nil {
		m.m = map[K]incarnation[M]{}
	}
	memory = new(M)
	if m.New != nil {
		memory = m.New(uid, old.memory)
	}
	m.m[key] = incarnation[M]{uid, memory}
	return memory, replaced
}

// Peek returns the memory of an object; nil if there is none.
func (m *Memory[K, M]) Peek(key K) *M {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.m[key].memory
}

// All returns the memories of all objects.
func (m *Memory[K, M]) All() []*M {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*M, 0, len(m.m))
	for _, i := range m.m {
		all = append(all, i.memory)
	}
	return all
}

// Keys returns the objects whose memory matches the predicate; all if it is nil.
func (m *Memory[K, M]) Keys(is func(*M) bool) []K {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []K
	for key, i := range m.m {
		if is == nil || is(i.memory) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Forget drops the memory of an object that was deleted, or that this controller no longer handles.
func (m *Memory[K, M]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(m.m[key].memory)
	delete(m.m, key)
}

func (m *Memory[K, M]) drop(memory *M) {
	if m.Drop != nil && memory != nil {
		m.Drop(memory)
	}
}
