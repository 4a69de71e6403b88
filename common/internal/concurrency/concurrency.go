// Package concurrency bounds the number of concurrent operations on each store.
package concurrency

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// width is how many objects use one store at the same time by default.
const width = 8

// Lanes bound what is under way at each store for objects that are known by a K, so that one that hangs
// holds neither workers nor values of the others. The zero Lanes are empty.
type Lanes[K comparable] struct {
	// Width is how many are in one lane at the same time. Default 8.
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

// Enter reports whether an object may use the store now. If not, Leave names it later.
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

// Leave gives a place back, and returns who waits for it, if anybody does.
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
