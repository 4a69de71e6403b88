package pushsecret

import (
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/uses"
)

// indexed is the part of an object that keeps its entries in the index of uses. Each change of what the object shows, of its
// entries and of where its stores lead is followed by an update. The zero value is not in an index.
type indexed struct {
	// mu is held from reading the entries until the index has them, so that an earlier state never replaces a later one.
	mu    sync.Mutex
	index *uses.Index[*object]
}

// show records the object as the watch reports it; nil once it is deleted. It returns what the watch reported before.
func (o *object) show(ps *v1alpha1.PushSecret) (was *v1alpha1.PushSecret) {
	was = o.seen.Swap(ps)
	o.reindex()
	return was
}

// reindex brings the index of uses up to date with the object.
func (o *object) reindex() {
	o.indexed.mu.Lock()
	defer o.indexed.mu.Unlock()
	if o.indexed.index == nil {
		return
	}
	var all []uses.Entry
	if ps := o.seen.Load(); ps != nil {
		o.eachEntry(ps, nil, func(id storeID, was string, e v1alpha1.PushEntryStatus, _ bool) {
			all = append(all, o.useOf(id, was, e))
		})
	}
	o.indexed.index.Set(o, all)
}

// addToIndex adds present entries of a store to the index of uses. Those that they replace stay until the next update of all:
// what the index finds is examined.
func (o *object) addToIndex(id storeID, entries []v1alpha1.PushEntryStatus) {
	o.indexed.mu.Lock()
	defer o.indexed.mu.Unlock()
	if o.indexed.index == nil {
		return
	}
	var place string
	if ps := o.seen.Load(); ps != nil {
		for _, s := range o.written.Later(ps).Status.Stores {
			if idOf(s) == id {
				place = s.Place
			}
		}
	}
	var all []uses.Entry
	for _, e := range entries {
		all = append(all, o.useOf(id, place, e))
	}
	o.indexed.index.Add(o, all)
}

// useOf returns an entry for the index of uses. was is the place that the status records.
func (o *object) useOf(id storeID, was string, e v1alpha1.PushEntryStatus) uses.Entry {
	at, located := o.stores.location(id)
	if !located {
		return uses.Entry{Place: was, Key: e.RemoteKey, ID: e.ID}
	}
	name, _ := at.name(e.RemoteKey)
	return uses.Entry{Place: at.place, Located: true, Key: e.RemoteKey, Name: name, ID: e.ID}
}

// unindex removes the object from the index of uses for good.
func (o *object) unindex() {
	o.indexed.mu.Lock()
	defer o.indexed.mu.Unlock()
	if o.indexed.index != nil {
		o.indexed.index.Set(o, nil)
		o.indexed.index = nil
	}
}

// recentChanges are the objects whose specs have changed lately. The zero value is ready to use.
type recentChanges struct {
	mu sync.Mutex
	// Bound: one per PushSecret.
	at map[*object]time.Time
}

// keepChanges is for how long changes are kept. It is longer than what most removals ask for.
const keepChanges = 2 * (recently + waitsFor)

func (c *recentChanges) add(o *object, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[*object]time.Time{}
	}
	c.at[o] = at
}

func (c *recentChanges) remove(o *object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.at, o)
}

// after returns the objects that have changed after a time; false if that is too long ago.
func (c *recentChanges) after(t, now time.Time) (changed []*object, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o, at := range c.at {
		if at.Before(now.Add(-keepChanges)) {
			delete(c.at, o)
		} else if at.After(t) {
			changed = append(changed, o)
		}
	}
	return changed, !t.Before(now.Add(-keepChanges))
}

// changedAfter returns the objects whose specs have changed after a time, and maybe others.
func (m *memory) changedAfter(t, now time.Time) []*object {
	if changed, known := m.changes.after(t, now); known {
		return changed
	}
	return m.All()
}
