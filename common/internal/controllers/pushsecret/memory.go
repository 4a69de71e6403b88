package pushsecret

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/uses"
)

// memory is that of the objects of this controller.
type memory struct {
	kit.Memory[types.NamespacedName, object]

	ahead   ahead
	changes recentChanges
	// places finds the objects that have an entry for a remote secret.
	places uses.Index[*object]
}

// newMemory returns an empty memory. It ends the pushes of a deleted object. Another object with its name may push other
// values.
func newMemory() *memory {
	m := &memory{}
	m.New = func(uid types.UID, _ *object) *object {
		o := &object{uid: uid}
		o.indexed.index = &m.places
		o.entries.onCall, o.entries.onSet, o.stores.onMove = func() { m.ahead.add(o) }, o.addToIndex, o.reindex
		return o
	}
	m.Drop = func(o *object) {
		o.stores.cancel()
		m.ahead.remove(o)
		m.changes.remove(o)
		o.unindex()
	}
	return m
}

// object is the state of one object. The walks over its stores use only what is safe for concurrent use.
type object struct {
	uid types.UID
	// seen is the object as the watch last reported it; nil once it is deleted. It is set by show.
	seen atomic.Pointer[v1alpha1.PushSecret]
	// since is when the watch first reported its generation.
	since atomic.Pointer[time.Time]
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
	indexed indexed
	// abandoned is true after the event that another module holds the object.
	abandoned bool
}

// entries are the changes of status entries that this process has not written to the API server yet, because a created secret
// must never be forgotten. The zero value is ready to use.
type entries struct {
	mu sync.Mutex
	// changed are the present entries for remote secrets, by store and key.
	// Bound: one per status entry of the object.
	changed map[storeID]map[string][]v1alpha1.PushEntryStatus
	// calls are the remote secrets that a call may change now, by store.
	// Bound: one per store of the object.
	calls map[storeID]string
	// onCall is called before each call that may change a remote secret. It may be nil.
	onCall func()
	// onSet is called with the entries that replace others. It may be nil.
	onSet func(id storeID, is []v1alpha1.PushEntryStatus)
}

// call records that a call may change a remote secret. The caller calls done once the entries show what it did.
func (e *entries) call(id storeID, key string) (done func()) {
	e.mu.Lock()
	if e.calls == nil {
		e.calls = map[storeID]string{}
	}
	e.calls[id] = key
	e.mu.Unlock()
	if e.onCall != nil {
		e.onCall()
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.calls, id)
	}
}

// callsTo returns the stores where a call may change a remote secret now.
func (e *entries) callsTo(key string) map[storeID]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := maps.Clone(e.calls)
	maps.DeleteFunc(at, func(_ storeID, is string) bool { return is != key })
	return at
}

// pending reports whether a call or a change was not written yet.
func (e *entries) pending() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.calls)+len(e.changed) > 0
}

// set records the entries for a remote secret. was is what the status showed.
func (e *entries) set(id storeID, key string, was, is []v1alpha1.PushEntryStatus) {
	if e.change(id, key, was, is) && e.onSet != nil {
		e.onSet(id, is)
	}
}

// change is set. It reports whether it has recorded anything.
func (e *entries) change(id storeID, key string, was, is []v1alpha1.PushEntryStatus) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, changed := e.changed[id][key]; !changed && slices.Equal(was, is) {
		return false
	}
	if e.changed == nil {
		e.changed = map[storeID]map[string][]v1alpha1.PushEntryStatus{}
	}
	if e.changed[id] == nil {
		e.changed[id] = map[string][]v1alpha1.PushEntryStatus{}
	}
	e.changed[id][key] = is
	return true
}

// own marks a property that another object hands over as created. ps is the object as the cache shows it.
func (o *object) own(ps *v1alpha1.PushSecret, id storeID, is v1alpha1.PushEntryStatus) {
	var was, next []v1alpha1.PushEntryStatus
	o.eachEntry(ps, only(is.RemoteKey), func(at storeID, _ string, e v1alpha1.PushEntryStatus, _ bool) {
		if at == id {
			was = append(was, e)
			e.Created = e.Created || e.Property == is.Property
			next = append(next, e)
		}
	})
	o.entries.set(id, is.RemoteKey, was, next)
}

// over returns the entries of a status with the changes.
func (e *entries) over(written []v1alpha1.PushStoreStatus) (out []v1alpha1.PushStoreStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := map[storeID]int{}
	for _, s := range written {
		at[idOf(s)] = len(out)
		out = append(out, *s.DeepCopy())
		out[len(out)-1].Entries = nil
	}
	e.each(written, nil, func(id storeID, _ string, is v1alpha1.PushEntryStatus, _ bool) {
		i, ok := at[id]
		if !ok {
			i, at[id] = len(out), len(out)
			out = append(out, v1alpha1.PushStoreStatus{APIVersion: id.apiVersion, Kind: id.kind, Name: id.name})
		}
		out[i].Entries = append(out[i].Entries, is)
	})
	slices.SortFunc(out, byID)
	return out
}

// only matches one key.
func only(key string) func(string) bool { return func(is string) bool { return is == key } }

// eachEntry calls f with the present entries of an object for the keys that match of; nil for all. ps is the object as the cache
// shows it. place is what the status shows for the store. recorded is true if the status shows the entry.
func (o *object) eachEntry(ps *v1alpha1.PushSecret, of func(key string) bool, f func(id storeID, place string, is v1alpha1.PushEntryStatus, recorded bool)) {
	o.entries.mu.Lock()
	defer o.entries.mu.Unlock()
	// Under the lock, because wrote drops a change once a written status has it.
	o.entries.each(o.written.Later(ps).Status.Stores, of, f)
}

// each is eachEntry for a status. The caller holds the lock.
func (e *entries) each(written []v1alpha1.PushStoreStatus, of func(key string) bool, f func(id storeID, place string, is v1alpha1.PushEntryStatus, recorded bool)) {
	places := map[storeID]string{}
	for i := range written {
		s := &written[i]
		places[idOf(*s)] = s.Place
		for _, is := range s.Entries {
			if of != nil && !of(is.RemoteKey) {
				continue
			}
			if _, changed := e.changed[idOf(*s)][is.RemoteKey]; !changed {
				f(idOf(*s), s.Place, is, true)
			}
		}
	}
	for id, keys := range e.changed {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if of != nil && !of(key) {
				continue
			}
			for _, is := range keys[key] {
				f(id, places[id], is, false)
			}
		}
	}
}

// wrote forgets the changes, which are written now, except those of stores with a running push.
func (e *entries) wrote(running []storeID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.changed, func(id storeID, _ map[string][]v1alpha1.PushEntryStatus) bool { return !slices.Contains(running, id) })
}

// unwritten reports whether a change was not written yet.
func (e *entries) unwritten() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.changed) > 0
}
