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
	mu        sync.Mutex
	byStore   map[storeID]v1alpha1.PushStoreStatus
	unwritten bool
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

// keep stores an entry that is not written to the API server yet. known are all entries known before.
func (e *entries) keep(known []v1alpha1.PushStoreStatus, entry v1alpha1.PushStoreStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byStore == nil {
		e.replaceLocked(known)
	}
	e.byStore[idOf(entry)] = *entry.DeepCopy()
	e.unwritten = true
}

// wrote replaces all entries by those just written to the status.
func (e *entries) wrote(all []v1alpha1.PushStoreStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replaceLocked(all)
}

func (e *entries) replaceLocked(all []v1alpha1.PushStoreStatus) {
	e.byStore, e.unwritten = map[storeID]v1alpha1.PushStoreStatus{}, false
	for _, s := range all {
		e.byStore[idOf(s)] = *s.DeepCopy()
	}
}
