package pushsecret

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// wrote are the entries of the status as they were written last, which the cache may not show yet.
	written bool
	// abandoned is true once it was told that another module holds the object. Only passes touch it.
	abandoned bool
	wrote     map[storeID]v1alpha1.PushStoreStatus
	ready     []metav1.Condition
}

// storeState is what is remembered of one store.
type storeState struct {
	running bool
	result  *result
	// attempt is what was tried last.
	attempt attempt
	// broken is true if the last failure was one that only a person can mend.
	broken bool
	// failures in a row, and no try before until.
	failures int
	until    time.Time
	// next is when the store is compared again; zero if that is not planned yet.
	next time.Time
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
		o = &object{uid: uid, stores: map[storeID]*storeState{}, wrote: map[storeID]v1alpha1.PushStoreStatus{}}
		r.objects[key] = o
	}
	return o
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, key)
	r.watches.Remove(owner(key))
}
