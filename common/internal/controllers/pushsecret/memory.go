package pushsecret

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/uses"
)

// memory is that of the objects of this controller.
type memory struct {
	kit.Memory[types.NamespacedName, object]

	// places finds the objects that have an entry for a remote secret.
	places uses.Index[*object]
	// ahead are the objects with entries that the cache does not show yet.
	// Bound: one per object.
	ahead sync.Map
}

// newMemory returns an empty memory.
func newMemory() *memory {
	m := &memory{}
	m.New = func(uid types.UID, _ *object) *object {
		o := &object{uid: uid, of: m}
		o.stores.onMove = o.reindex
		return o
	}
	m.Drop = func(o *object) { o.show(nil) }
	return m
}

// object is the state of one object. It is safe for concurrent use.
type object struct {
	uid types.UID
	// seen is the object as the watch last reported it; nil once it is deleted. It is set by show.
	seen atomic.Pointer[v1alpha1.PushSecret]
	// survey is that of the last walk over the object; nil before the first.
	survey  atomic.Pointer[survey]
	stores  progress
	sources sourceMemory
	// writing is held while the status is written, so that each write has all that was made before.
	writing sync.Mutex
	rows    rows
	// written is the object with the status that this process last wrote.
	written overlay.Object[*v1alpha1.PushSecret]
	// indexing is held from reading the entries until the index of uses has them, so that an earlier state never replaces a later one.
	indexing sync.Mutex
	// of is the memory of the object.
	of *memory
	// abandoned is true after the event that another module holds the object.
	abandoned bool
}

// survey is what the walks over an object at its stores need of the walk over the object.
type survey struct {
	// generation is that of the object, which has the finalizer if its spec needs one.
	generation int64
	// named are the stores of this module that the spec names, and open those where something may be pushed or removed now.
	named, open []storeID
	// elsewhere are the stores that an operator of another class serves. It writes their status entries.
	elsewhere []storeID
	// writesConditions is true if this operator writes the conditions of the object. It does not if the first store has another
	// class.
	writesConditions bool
}

func (s survey) equal(o survey) bool {
	return s.generation == o.generation && s.writesConditions == o.writesConditions && slices.Equal(s.named, o.named) && slices.Equal(s.open, o.open) && slices.Equal(s.elsewhere, o.elsewhere)
}

// rows are the status entries of stores that were not written to the API server yet, because a created secret must never be
// forgotten. The zero value is ready to use.
type rows struct {
	mu sync.Mutex
	// Bound: one per store of the object.
	changed map[storeID]*v1alpha1.PushStoreStatus
	// base has the entries of the status that a change was made from.
	// Bound: one per change.
	base map[storeID][]v1alpha1.PushEntryStatus
}

// edit changes the status entry of a store, unless change returns false. change must replace its Entries, and not change them. ps is
// the object as the cache shows it. The next write of the status has the change.
func (o *object) edit(ps *v1alpha1.PushSecret, id storeID, change func(*v1alpha1.PushStoreStatus) bool) {
	o.rows.mu.Lock()
	defer o.rows.mu.Unlock()
	is := o.row(ps, id)
	base := is.Entries
	is.Conditions = slices.Clone(is.Conditions)
	if change(&is) {
		if o.rows.changed == nil {
			o.rows.changed, o.rows.base = map[storeID]*v1alpha1.PushStoreStatus{}, map[storeID][]v1alpha1.PushEntryStatus{}
		}
		if o.rows.changed[id] == nil {
			o.rows.base[id] = base
		}
		if o.rows.changed[id] = &is; o.seen.Load() != nil {
			o.of.ahead.Store(o, nil)
		}
	}
}

// shown notes whether the cache shows all entries.
func (o *object) shown() {
	o.rows.mu.Lock()
	defer o.rows.mu.Unlock()
	if ps := o.seen.Load(); ps == nil || len(o.rows.changed) == 0 && o.written.Later(ps) == ps {
		o.of.ahead.Delete(o)
	}
}

// record replaces the entries for a remote secret.
func (o *object) record(ps *v1alpha1.PushSecret, id storeID, key string, entries []v1alpha1.PushEntryStatus) {
	var now v1alpha1.PushStoreStatus
	o.edit(ps, id, func(s *v1alpha1.PushStoreStatus) bool {
		var was, next []v1alpha1.PushEntryStatus
		for _, e := range s.Entries {
			if e.RemoteKey == key {
				was = append(was, e)
			} else {
				next = append(next, e)
			}
		}
		s.Entries = slices.Concat(next, entries)
		now = *s
		return !equality.Semantic.DeepEqual(was, entries)
	})
	now.Entries = entries
	o.addToIndex(&now)
}

// refOf returns what an entry is about.
func refOf(e v1alpha1.PushEntryStatus) v1alpha1.PushRemoteRef {
	return v1alpha1.PushRemoteRef{RemoteKey: e.RemoteKey, Property: e.Property}
}

// own marks a property that another object hands over as created.
func (o *object) own(ps *v1alpha1.PushSecret, id storeID, is v1alpha1.PushEntryStatus) {
	o.edit(ps, id, func(s *v1alpha1.PushStoreStatus) bool {
		s.Entries = slices.Clone(s.Entries)
		for i := range s.Entries {
			if e := &s.Entries[i]; refOf(*e) == refOf(is) {
				e.Created = true
			}
		}
		return true
	})
}

// row returns the present status entry of a store. The caller holds the lock of the rows.
func (o *object) row(ps *v1alpha1.PushSecret, id storeID) v1alpha1.PushStoreStatus {
	if is := o.rows.changed[id]; is != nil {
		return *is
	}
	// Under the lock, because wrote drops a change once a written status has it.
	for _, s := range o.written.Later(ps).Status.Stores {
		if idOf(s) == id {
			return s
		}
	}
	return v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name}
}

// present returns the present status entries of an object, sorted. They must not be changed. unsaved are those that the status does not
// show.
func (o *object) present(ps *v1alpha1.PushSecret) (all []v1alpha1.PushStoreStatus, unsaved map[storeID]*v1alpha1.PushStoreStatus) {
	o.rows.mu.Lock()
	defer o.rows.mu.Unlock()
	for _, s := range o.written.Later(ps).Status.Stores {
		if o.rows.changed[idOf(s)] == nil {
			all = append(all, s)
		}
	}
	for _, s := range o.rows.changed {
		all = append(all, *s)
	}
	slices.SortFunc(all, byID)
	return all, maps.Clone(o.rows.changed)
}

// behind reports whether a status has other entries than the one that a change was made from.
func (r *rows) behind(stores []v1alpha1.PushStoreStatus) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(stores, func(s v1alpha1.PushStoreStatus) bool {
		id := idOf(s)
		return r.changed[id] != nil && !equality.Semantic.DeepEqual(r.base[id], s.Entries)
	})
}

// merge adds the entries that another process of this module has written to the changes, so that neither is forgotten. An
// entry that one of the two has created stays created.
func (r *rows) merge(stores []v1alpha1.PushStoreStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range stores {
		id := idOf(s)
		is := r.changed[id]
		if is == nil {
			continue
		}
		all := *is
		all.Entries = slices.Clone(is.Entries)
		for _, e := range s.Entries {
			i := slices.IndexFunc(all.Entries, func(o v1alpha1.PushEntryStatus) bool { return refOf(o) == refOf(e) })
			switch {
			case i < 0:
				all.Entries = append(all.Entries, e)
			case e.Created && !all.Entries[i].Created:
				all.Entries[i] = e
			}
		}
		r.changed[id], r.base[id] = &all, s.Entries
	}
}

// wrote forgets changes, which are written now, unless there are later ones. Those were made from the status that is now written.
func (r *rows) wrote(saved map[storeID]*v1alpha1.PushStoreStatus, stores []v1alpha1.PushStoreStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.changed, func(id storeID, is *v1alpha1.PushStoreStatus) bool { return saved[id] == is })
	maps.DeleteFunc(r.base, func(id storeID, _ []v1alpha1.PushEntryStatus) bool { return r.changed[id] == nil })
	for _, s := range stores {
		if id := idOf(s); r.changed[id] != nil {
			r.base[id] = s.Entries
		}
	}
}
