package pushsecret

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// storeID names a store in the status.
type storeID struct{ apiVersion, kind, name string }

func idOf(s v1alpha1.PushStoreStatus) storeID { return storeID{s.APIVersion, s.Kind, s.Name} }

// object is what this process remembers of a PushSecret.
type object struct {
	mu  sync.Mutex
	uid types.UID
	// seen are the versions of what is pushed; nil if they have to be read.
	seen *versions
	// told counts the changes that watches have shown.
	told int
	// stores by what their status calls them.
	stores map[storeID]*storeState
	// entries are those of the status as this process knows them, which the cache may not show yet; nil as
	// long as the cache is all there is. unwritten is true if they have yet to be written.
	entries   map[storeID]v1alpha1.PushStoreStatus
	unwritten bool
	// written is the object as this process wrote its status last, until the cache shows it.
	written *v1alpha1.PushSecret
	// wish is what values were asked for last, wished when that was first seen.
	wish   wish
	wished time.Time
	// abandoned is true once it was told that another module holds the object. Only passes touch it.
	abandoned bool
}

// wish is what generated values are asked for by.
type wish struct {
	generation int64
	request    string
}

// keep remembers an entry of the status. known are all that were known before, for the first time.
func (o *object) keep(known []v1alpha1.PushStoreStatus, entry v1alpha1.PushStoreStatus) {
	if o.entries == nil {
		o.entries = map[storeID]v1alpha1.PushStoreStatus{}
		for _, s := range known {
			o.entries[idOf(s)] = s
		}
	}
	o.entries[idOf(entry)] = *entry.DeepCopy()
	o.unwritten = true
}

// running reports whether anything is being pushed, or has been and was not looked at yet.
func (o *object) running() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.stores {
		if s.running || s.result != nil {
			return true
		}
	}
	return false
}

// storeState is what is remembered of one store.
type storeState struct {
	running bool
	result  *result
	// cancel ends what is running.
	cancel func()
	// attempt is what was tried last.
	attempt attempt
	// broken is true if the last failure was one that only a person can mend.
	broken bool
	// failures in a row, and no try before until.
	failures int
	until    time.Time
	// next is when the store is compared again; zero if that is not planned yet.
	next time.Time
	// good is when the store was in step last.
	good time.Time
}

func (o *object) store(id storeID) *storeState {
	s := o.stores[id]
	if s == nil {
		s = &storeState{}
		o.stores[id] = s
	}
	return s
}

// noWait has stores that failed tried again at once.
func (o *object) noWait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.stores {
		s.until = time.Time{}
	}
}

// stale notes that what is pushed has changed.
func (o *object) stale() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told++
}

// end stops what is being pushed for an object that is no more: another of its name may push something else.
func (o *object) end() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.stores {
		if s.running {
			s.cancel()
		}
	}
}

func (r *Reconciler) peek(key types.NamespacedName) *object {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[key]
}

// object returns what is remembered of an object, anew for another of the same name.
func (r *Reconciler) object(key types.NamespacedName, uid types.UID) *object {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[key]
	if o == nil || o.uid != uid {
		o.end()
		o = &object{uid: uid, stores: map[storeID]*storeState{}}
		r.objects[key] = o
	}
	return o
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects[key].end()
	delete(r.objects, key)
	r.ledger.Forget(key)
	r.watches.Remove(owner(key))
}
