package pushsecret

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
)

// memory is that of the objects of this controller.
type memory = kit.Memory[types.NamespacedName, object]

// newMemory returns an empty memory. It ends the pushes of a deleted object. Another object with its name may push other
// values.
func newMemory() *memory {
	return &memory{
		New:  func(uid types.UID, _ *object) *object { return &object{uid: uid} },
		Drop: func(o *object) { o.stores.cancel() },
	}
}

// object is the state of one object. The walks over its stores use only what is safe for concurrent use.
type object struct {
	uid types.UID
	// seen is the object as the watch last reported it; nil once it is deleted.
	seen atomic.Pointer[v1alpha1.PushSecret]
	// walked is the generation over which a walk last went.
	walked atomic.Int64
	// held is true once the object has the finalizer. The cache can be behind.
	held atomic.Bool
	// stores, sources and entries are safe for concurrent use.
	stores  progress
	sources sourceMemory
	entries entries
	// written is the object with the status that this process last wrote.
	written overlay.Object[*v1alpha1.PushSecret]
	// abandoned is true after the event that another module holds the object.
	abandoned bool
}

// entries are this module's status entries as this process knows them. They include entries that could not be written
// yet, because a created secret must never be forgotten. The zero value stands for the entries in the cache.
type entries struct {
	mu      sync.Mutex
	byStore map[storeID]*v1alpha1.PushStoreStatus
	// fresh are the stores whose entries have changed since they were last written.
	fresh map[storeID]bool
}

// or returns the entries, or the cached ones if there are no others.
func (e *entries) or(cached []v1alpha1.PushStoreStatus) []v1alpha1.PushStoreStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byStore == nil {
		slices.SortFunc(cached, byID)
		return cached
	}
	var out []v1alpha1.PushStoreStatus
	for _, s := range e.byStore {
		out = append(out, *s.DeepCopy())
	}
	slices.SortFunc(out, byID)
	return out
}

// each calls f with all entries of an object as the watch reported it, those of other operators included. recorded is true
// if the status shows them. f must not keep or change what it gets.
func (e *entries) each(ps *v1alpha1.PushSecret, f func(s *v1alpha1.PushStoreStatus, recorded bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, s := range e.byStore {
		f(s, !e.fresh[id])
	}
	for i := range ps.Status.Stores {
		s := &ps.Status.Stores[i]
		if _, known := e.byStore[idOf(*s)]; !known {
			f(s, true)
		}
	}
}

// keep stores an entry that is not written to the API server yet. known are all entries known before.
func (e *entries) keep(known []v1alpha1.PushStoreStatus, entry v1alpha1.PushStoreStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.startLocked(known)
	e.byStore[idOf(entry)], e.fresh[idOf(entry)] = entry.DeepCopy(), true
}

// set replaces the entries for a remote secret. known are all entries known before.
func (e *entries) set(known []v1alpha1.PushStoreStatus, id storeID, key string, entries []v1alpha1.PushEntryStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.startLocked(known)
	s := e.byStore[id]
	if s == nil {
		s = &v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name}
		e.byStore[id] = s
	}
	next := slices.Concat(slices.DeleteFunc(slices.Clone(s.Entries), func(o v1alpha1.PushEntryStatus) bool { return o.RemoteKey == key }), entries)
	if !slices.Equal(s.Entries, next) {
		s.Entries, e.fresh[id] = next, true
	}
}

// startLocked takes the entries of the cache, unless there are others.
func (e *entries) startLocked(known []v1alpha1.PushStoreStatus) {
	if e.byStore != nil {
		return
	}
	e.byStore, e.fresh = map[storeID]*v1alpha1.PushStoreStatus{}, map[storeID]bool{}
	for _, s := range known {
		e.byStore[idOf(s)] = s.DeepCopy()
	}
}

// wrote replaces the entries by those just written to the status, except those of stores with a running push.
func (e *entries) wrote(all []v1alpha1.PushStoreStatus, running []storeID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.byStore
	e.byStore = map[storeID]*v1alpha1.PushStoreStatus{}
	if e.fresh == nil {
		e.fresh = map[storeID]bool{}
	}
	for _, s := range all {
		e.byStore[idOf(s)] = s.DeepCopy()
	}
	for id, s := range was {
		if slices.Contains(running, id) {
			e.byStore[id] = s
		} else {
			delete(e.fresh, id)
		}
	}
}

// unwritten reports whether an entry was not written yet.
func (e *entries) unwritten() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.fresh) > 0
}
