package pushsecret

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
)

// memory is what this process remembers of objects between two passes. It is safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*object
}

// peek returns what is remembered of an object; nil for nothing.
func (m *memory) peek(key types.NamespacedName) *object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[key]
}

// object returns what is remembered of an object, anew for another of the same name.
func (m *memory) object(key types.NamespacedName, uid types.UID) *object {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.objects[key]
	if o == nil || o.uid != uid {
		o.end()
		o = &object{uid: uid}
		m.objects[key] = o
	}
	return o
}

func (m *memory) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key].end()
	delete(m.objects, key)
}

// object is what is remembered of one object. One worker at a time uses it; others reach what is safe for concurrent
// use.
type object struct {
	uid types.UID
	// stores are safe for concurrent use.
	stores progress
	// Of sources, stale is.
	sources sourceMemory
	entries entries
	// written is the object with the status that this process wrote last.
	written overlay.Object[*v1alpha1.PushSecret]
	// abandoned is true once it was told that another module holds the object.
	abandoned bool
}

// end stops what is being pushed for an object that is no more: another of its name may push something else.
func (o *object) end() {
	if o != nil {
		o.stores.cancel()
	}
}

// entries are those of the status that this module writes, as this process knows them: also those that could not be
// written, since what was created must not be forgotten. The zero entries are what the cache shows.
type entries struct {
	byStore   map[storeID]v1alpha1.PushStoreStatus
	unwritten bool
}

// or returns the entries, or those that the cache shows if that is all there is.
func (e *entries) or(cached []v1alpha1.PushStoreStatus) []v1alpha1.PushStoreStatus {
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

// keep remembers an entry that is yet to be written. known are all that were known before.
func (e *entries) keep(known []v1alpha1.PushStoreStatus, entry v1alpha1.PushStoreStatus) {
	if e.byStore == nil {
		e.wrote(known)
	}
	e.byStore[idOf(entry)] = *entry.DeepCopy()
	e.unwritten = true
}

// wrote remembers what the status has now.
func (e *entries) wrote(all []v1alpha1.PushStoreStatus) {
	*e = entries{byStore: map[storeID]v1alpha1.PushStoreStatus{}}
	for _, s := range all {
		e.byStore[idOf(s)] = *s.DeepCopy()
	}
}
