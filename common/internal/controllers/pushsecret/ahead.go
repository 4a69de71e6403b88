package pushsecret

import (
	"sync"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// ahead are the objects that push now, or that have pushed what the cache does not show yet. The index of the cache misses them,
// so each event about a remote secret checks them. The zero value is ready to use.
type ahead struct {
	mu sync.Mutex
	// Bound: one per PushSecret.
	objects map[*object]struct{}
}

func (a *ahead) add(o *object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.objects == nil {
		a.objects = map[*object]struct{}{}
	}
	a.objects[o] = struct{}{}
}

func (a *ahead) remove(o *object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects, o)
}

// shown removes an object if the cache shows all that it has pushed, or that it was deleted.
func (a *ahead) shown(o *object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ps := o.seen.Load(); ps == nil || !o.entries.pending() && o.written.Later(ps) == ps {
		delete(a.objects, o)
	}
}

func (a *ahead) all() (all []*object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for o := range a.objects {
		all = append(all, o)
	}
	return all
}

// pushes returns the stores of a Kind where an object pushes a remote secret, or has pushed it. ps is the object as the cache shows
// it. The value is true for a store if version is that of the push.
func (o *object) pushes(ps *v1alpha1.PushSecret, kind, key, version string) map[storeID]bool {
	stores := map[storeID]bool{}
	o.eachEntry(ps, only(key), func(id storeID, _ string, e v1alpha1.PushEntryStatus, _ bool) {
		if id.kind == kind {
			others, found := stores[id]
			stores[id] = version != "" && e.Version == version && (others || !found)
		}
	})
	for id := range o.entries.callsTo(key) {
		if id.kind == kind {
			stores[id] = false
		}
	}
	return stores
}
