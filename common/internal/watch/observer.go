package watch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

type subscription struct {
	known string
	// at is the resourceVersion of the object or list that known was read from.
	at      string
	changed func()
}

// observer is the store that a reflector fills. It keeps one resourceVersion, or those of many objects, and calls the
// subscribers that know another one.
type observer struct {
	// cancel ends the watch; nil if the object is read instead.
	cancel context.CancelFunc
	// many is true for a selector, which can match any number of objects.
	many bool

	mu     sync.Mutex
	synced bool
	// versions are the resourceVersions by object name.
	// Bound: one per object that the observer selects.
	versions map[string]string
	// seen is the resourceVersion of the object, or VersionOf many; empty if there is none.
	seen string
	// at is the resourceVersion of the event or list that seen is from.
	at string
	// Bound: one per object that refers to what is observed.
	subs map[any]*subscription
}

func (o *observer) subscribe(owner any, s *subscription) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subs[owner] = s
	if o.synced {
		o.notifyLocked(s)
	}
}

func (o *observer) unsubscribe(owner any) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.subs, owner)
	return len(o.subs)
}

func (o *observer) notifyLocked(s *subscription) {
	if s.known == o.seen || o.behindLocked(s.at) {
		return
	}
	s.known, s.at = o.seen, o.at
	go s.changed()
}

// behindLocked reports whether the watch is older than a subscriber's read, so that its state is out of date. If the
// versions cannot be compared, it returns false.
func (o *observer) behindLocked(at string) bool {
	c, err := resourceversion.CompareResourceVersion(o.at, at)
	return err == nil && c < 0
}

// Add implements cache.Store.
func (o *observer) Add(obj any) error { return o.Update(obj) }

// Update implements cache.Store.
func (o *observer) Update(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	o.note(m.GetResourceVersion(), func() { o.versions[m.GetName()] = m.GetResourceVersion() })
	return nil
}

// Delete implements cache.Store. obj has the resourceVersion of its deletion.
func (o *observer) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	o.note(m.GetResourceVersion(), func() { delete(o.versions, m.GetName()) })
	return nil
}

// Replace implements cache.Store.
func (o *observer) Replace(list []any, resourceVersion string) error {
	versions := make(map[string]string, len(list))
	for _, obj := range list {
		m, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		versions[m.GetName()] = m.GetResourceVersion()
	}
	o.note(resourceVersion, func() { o.versions = versions })
	return nil
}

// note applies the change of an event or list that has resourceVersion at.
func (o *observer) note(at string, change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.versions == nil {
		o.versions = map[string]string{}
	}
	change()
	o.synced, o.at, o.seen = true, at, ""
	if o.many {
		o.seen = VersionOf(o.versions)
	}
	for _, version := range o.versions {
		if !o.many {
			o.seen = version
		}
	}
	for _, s := range o.subs {
		o.notifyLocked(s)
	}
}

// Resync implements cache.Store.
func (o *observer) Resync() error { return nil }
