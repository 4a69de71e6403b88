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
	// abandoned is true after the event that another module holds the object.
	abandoned bool
}

// entries are the changes of status entries that this process has not written to the API server yet, because a created secret
// must never be forgotten. The zero value is ready to use.
type entries struct {
	mu sync.Mutex
	// changed are the present entries for remote secrets, by store and key.
	changed map[storeID]map[string][]v1alpha1.PushEntryStatus
}

// set records the entries for a remote secret. was is what the status showed.
func (e *entries) set(id storeID, key string, was, is []v1alpha1.PushEntryStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, changed := e.changed[id][key]; !changed && slices.Equal(was, is) {
		return
	}
	if e.changed == nil {
		e.changed = map[storeID]map[string][]v1alpha1.PushEntryStatus{}
	}
	if e.changed[id] == nil {
		e.changed[id] = map[string][]v1alpha1.PushEntryStatus{}
	}
	e.changed[id][key] = is
}

// own marks a property that another object hands over as created. written is the status of the object.
func (e *entries) own(written []v1alpha1.PushStoreStatus, id storeID, is v1alpha1.PushEntryStatus) {
	var was, next []v1alpha1.PushEntryStatus
	e.each(written, func(at storeID, _ string, o v1alpha1.PushEntryStatus, _ bool) {
		if at == id && o.RemoteKey == is.RemoteKey {
			was = append(was, o)
			o.Created = o.Created || o.Property == is.Property
			next = append(next, o)
		}
	})
	e.set(id, is.RemoteKey, was, next)
}

// over returns the entries of a status with the changes.
func (e *entries) over(written []v1alpha1.PushStoreStatus) (out []v1alpha1.PushStoreStatus) {
	at := map[storeID]int{}
	for _, s := range written {
		at[idOf(s)] = len(out)
		out = append(out, *s.DeepCopy())
		out[len(out)-1].Entries = nil
	}
	e.each(written, func(id storeID, _ string, is v1alpha1.PushEntryStatus, _ bool) {
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

// each calls f with the entries of a status and the changes. place is what the status shows for the store. recorded is true if
// the status shows the entry.
func (e *entries) each(written []v1alpha1.PushStoreStatus, f func(id storeID, place string, is v1alpha1.PushEntryStatus, recorded bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	places := map[storeID]string{}
	for i := range written {
		s := &written[i]
		places[idOf(*s)] = s.Place
		for _, is := range s.Entries {
			if _, changed := e.changed[idOf(*s)][is.RemoteKey]; !changed {
				f(idOf(*s), s.Place, is, true)
			}
		}
	}
	for id, keys := range e.changed {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
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
