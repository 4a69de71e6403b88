// Package concurrency bounds the number of concurrent operations on each store.
package concurrency

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// width is the default number of objects that use one store at the same time.
const width = 8

// A Limiter limits the concurrent operations on each store, for objects that are identified by a K. A store that hangs
// then holds neither the workers nor the values of other stores. The zero Limiter is empty and ready for use.
type Limiter[K comparable] struct {
	// Width is the maximum number of objects that use one store. Default 8.
	Width int

	mu   sync.Mutex
	open map[Key]*slots[K]
}

// A Key is a store, and the namespace in which its credentials are looked up.
type Key struct {
	UID                  types.UID
	CredentialsNamespace string
}

type slots[K comparable] struct {
	busy    int
	waiting []K
}

// Enter reports whether an object can use the store now. If not, the object waits, and a later Release returns it.
func (l *Limiter[K]) Enter(k Key, object K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.open[k]
	if ln == nil {
		ln = &slots[K]{}
		if l.open == nil {
			l.open = map[Key]*slots[K]{}
		}
		l.open[k] = ln
	}
	ln.waiting = slices.DeleteFunc(ln.waiting, func(w K) bool { return w == object })
	if ln.busy < cmp.Or(l.Width, width) {
		ln.busy++
		return true
	}
	ln.waiting = append(ln.waiting, object)
	return false
}

// Release frees a place, and returns the object that has waited longest; waits is false if none waits.
func (l *Limiter[K]) Release(k Key) (next K, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.open[k]
	ln.busy--
	if len(ln.waiting) > 0 {
		next, ln.waiting, waits = ln.waiting[0], ln.waiting[1:], true
	}
	if ln.busy == 0 && !waits {
		delete(l.open, k)
	}
	return next, waits
}
