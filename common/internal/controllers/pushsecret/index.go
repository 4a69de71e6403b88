package pushsecret

import (
	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/uses"
)

// Each change of what an object shows, of its entries and of where its stores lead is followed by an update of the index of uses.

// show records the object as the watch reports it; nil once it is deleted.
func (o *object) show(ps *v1alpha1.PushSecret) {
	o.seen.Store(ps)
	o.shown()
	o.reindex()
}

// reindex brings the index of uses up to date with the object.
func (o *object) reindex() {
	o.indexing.Lock()
	defer o.indexing.Unlock()
	var all []uses.Entry
	if ps := o.seen.Load(); ps != nil {
		stores, _ := o.present(ps)
		for i := range stores {
			all = append(all, o.usesOf(&stores[i])...)
		}
	}
	o.of.places.Set(o, all)
}

// addToIndex adds the present entries of a store to the index of uses. Those that they replace stay until the next update of all:
// what the index finds is examined.
func (o *object) addToIndex(s *v1alpha1.PushStoreStatus) {
	o.indexing.Lock()
	defer o.indexing.Unlock()
	if o.seen.Load() != nil {
		o.of.places.Add(o, o.usesOf(s))
	}
}

// usesOf returns the entries of a store for the index of uses.
func (o *object) usesOf(s *v1alpha1.PushStoreStatus) (all []uses.Entry) {
	at, located := o.stores.location(idOf(*s))
	for _, e := range s.Entries {
		is := uses.Entry{Place: s.Place, Key: e.RemoteKey, ID: e.ID}
		if located {
			is.Place, is.Located = at.place, true
			is.Name, _ = at.name(e.RemoteKey)
		}
		all = append(all, is)
	}
	return all
}
