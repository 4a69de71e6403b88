package pushsecret

import (
	"maps"
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

// entries are the status entries of stores that this process has not written to the API server yet, because a created secret
// must never be forgotten. The zero value is ready to use.
type entries struct {
	mu    sync.Mutex
	fresh map[storeID]*v1alpha1.PushStoreStatus
}

// over returns the entries of a status, with those that are not written yet.
func (e *entries) over(written []v1alpha1.PushStoreStatus) (out []v1alpha1.PushStoreStatus) {
	e.each(written, func(s *v1alpha1.PushStoreStatus, _ bool) { out = append(out, *s.DeepCopy()) })
	slices.SortFunc(out, byID)
	return out
}

// each calls f with the entries of a status, and those that are not written yet instead of the former. recorded is true if the
// status shows them. f must not keep or change what it gets.
func (e *entries) each(written []v1alpha1.PushStoreStatus, f func(s *v1alpha1.PushStoreStatus, recorded bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.fresh {
		f(s, false)
	}
	for i := range written {
		if e.fresh[idOf(written[i])] == nil {
			f(&written[i], true)
		}
	}
}

// keep stores the entry of a store until it is written.
func (e *entries) keep(entry v1alpha1.PushStoreStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fresh == nil {
		e.fresh = map[storeID]*v1alpha1.PushStoreStatus{}
	}
	e.fresh[idOf(entry)] = entry.DeepCopy()
}

// set replaces the entries for a remote secret. known is the entry of the store when the push began.
func (e *entries) set(known v1alpha1.PushStoreStatus, key string, entries []v1alpha1.PushEntryStatus) {
	e.mu.Lock()
	if s := e.fresh[idOf(known)]; s != nil {
		known = *s
	}
	e.mu.Unlock()
	next := slices.Concat(slices.DeleteFunc(slices.Clone(known.Entries), func(o v1alpha1.PushEntryStatus) bool { return o.RemoteKey == key }), entries)
	if !slices.Equal(known.Entries, next) {
		known.Entries = next
		e.keep(known)
	}
}

// wrote forgets the entries just written to the status, except those of stores with a running push.
func (e *entries) wrote(running []storeID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.fresh, func(id storeID, _ *v1alpha1.PushStoreStatus) bool { return !slices.Contains(running, id) })
}

// unwritten reports whether an entry was not written yet.
func (e *entries) unwritten() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.fresh) > 0
}
