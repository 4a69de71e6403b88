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

// Lanes limit the concurrent operations on each store, for objects that are identified by a K. A store that hangs
// then holds neither the workers nor the values of other stores. The zero Lanes are empty and ready for use.
type Lanes[K comparable] struct {
	// Width is the maximum number of objects in one lane. Default 8.
	Width int

	mu   sync.Mutex
	open map[Key]*lane[K]
}

// A Key is a store, and the namespace in which its credentials are looked up.
type Key struct {
	UID    types.UID
	Beside string
}

type lane[K comparable] struct {
	busy    int
	waiting []K
}

// Enter reports whether an object can use the store now. If not, the object waits, and a later Leave returns it.
func (l *Lanes[K]) Enter(k Key, who K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.open[k]
	if ln == nil {
		ln = &lane[K]{}
		if l.open == nil {
			l.open = map[Key]*lane[K]{}
		}
		l.open[k] = ln
	}
	ln.waiting = slices.DeleteFunc(ln.waiting, func(w K) bool { return w == who })
	if ln.busy < cmp.Or(l.Width, width) {
		ln.busy++
		return true
	}
	ln.waiting = append(ln.waiting, who)
	return false
}

// Leave frees a place, and returns the object that has waited longest; waits is false if none waits.
func (l *Lanes[K]) Leave(k Key) (next K, waits bool) {
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
