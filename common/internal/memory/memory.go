// Package memory holds what a controller remembers about objects between two passes. Losing it does no harm: it is
// empty after a restart.
package memory

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Objects hold one memory for each object that a controller has processed. They are safe for concurrent use; each
// memory guards its own fields.
type Objects[T any] struct {
	// Drop is called with each memory that is dropped. It may be nil.
	Drop func(*T)

	mu sync.Mutex
	m  map[types.NamespacedName]incarnation[T]
}

// incarnation is an object under one uid.
type incarnation[T any] struct {
	uid    types.UID
	memory *T
}

// Get returns the memory of an object. It is empty for a new object, and for one that was deleted and created again,
// with another uid; replaced is true in the last case.
func (o *Objects[T]) Get(key types.NamespacedName, uid types.UID) (memory *T, replaced bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, ok := o.m[key]
	if ok && old.uid == uid {
		return old.memory, false
	}
	if ok {
		o.drop(old)
	}
	if o.m == nil {
		o.m = map[types.NamespacedName]incarnation[T]{}
	}
	o.m[key] = incarnation[T]{uid, new(T)}
	return o.m[key].memory, ok
}

// Peek returns the memory of an object; nil if there is none.
func (o *Objects[T]) Peek(key types.NamespacedName) *T {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.m[key].memory
}

// Keys returns the objects whose memory matches the predicate.
func (o *Objects[T]) Keys(is func(*T) bool) []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []types.NamespacedName
	for key, i := range o.m {
		if is(i.memory) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Forget drops the memory of an object that was deleted, or that this controller no longer handles.
func (o *Objects[T]) Forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if old, ok := o.m[key]; ok {
		o.drop(old)
		delete(o.m, key)
	}
}

func (o *Objects[T]) drop(i incarnation[T]) {
	if o.Drop != nil {
		o.Drop(i.memory)
	}
}
