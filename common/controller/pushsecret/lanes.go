package pushsecret

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// perLane is how many objects are pushed to one store at the same time.
const perLane = 8

// lanes bound what is under way at each store, so that one that hangs holds neither workers nor values
// of the others.
type lanes struct {
	mu   sync.Mutex
	open map[laneKey]*lane
}

// laneKey is a store, and the namespace in which its credentials are looked up.
type laneKey struct {
	uid    types.UID
	beside string
}

type lane struct {
	busy    int
	waiting []types.NamespacedName
}

func newLanes() *lanes { return &lanes{open: map[laneKey]*lane{}} }

// enter reports whether an object may be pushed now. If not, leave names it later.
func (l *lanes) enter(k laneKey, who types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.open[k]
	if ln == nil {
		ln = &lane{}
		l.open[k] = ln
	}
	ln.waiting = slices.DeleteFunc(ln.waiting, func(w types.NamespacedName) bool { return w == who })
	if ln.busy < perLane {
		ln.busy++
		return true
	}
	ln.waiting = append(ln.waiting, who)
	return false
}

// leave gives a place back, and returns who waits for it, if anybody does.
func (l *lanes) leave(k laneKey) (next types.NamespacedName, waits bool) {
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
