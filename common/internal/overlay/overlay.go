// Package overlay lets a process see what it has written itself while its caches do not show it yet.
package overlay

import (
	"context"
	"slices"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// belief is how long a written object is believed to exist while the cache shows none. A watch that was interrupted may
// never show an object that was created and deleted meanwhile.
const belief = time.Minute

// maxSeen bounds the events that are remembered, since an object can be named anew without end. Without the event of a
// deletion the deleted object is believed to exist for as long as belief.
const maxSeen = 16

// An Object is what this process wrote last of one object, or of one that is named anew now and then. It is forgotten
// once the cache shows it, or anything later. The zero Object is empty. It is safe for concurrent use.
//
// Only the name, uid and resourceVersion of what is written have to be set, besides what the caller reads of it. It
// must not be changed afterwards.
type Object[O interface {
	comparable
	client.Object
}] struct {
	mu      sync.Mutex
	written O
	at      time.Time
	// seen holds, by name, the version of the last event: it can arrive before the answer to the write. The latest event
	// is the last.
	seen []version
}

type version struct{ name, resourceVersion string }

// Wrote remembers an object as the API server returned it from a write.
func (o *Object[O]) Wrote(written O) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := o.lastOf(written); i >= 0 && older(written.GetResourceVersion(), o.seen[i].resourceVersion) {
		o.forget() // The cache shows what came after the write, and that may have been the deletion.
		return
	}
	o.written, o.at = written, time.Now()
}

// Get reads an object from a cache into an empty one, and returns that or what was written of it, whichever is later;
// nil if there is none. No event is noted meanwhile: after it, the cache would be believed that was read before it.
func (o *Object[O]) Get(ctx context.Context, cache client.Reader, key client.ObjectKey, into O) (O, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none O
	switch err := cache.Get(ctx, key, into); {
	case kerrors.IsNotFound(err):
		return o.latest(none, key.Name), nil
	case err != nil:
		return none, err
	}
	return o.latest(into, key.Name), nil
}

// Latest returns an object that was read from a cache, or what was written of it, whichever is later. Use it only if no
// event can have been noted since the cache was read.
func (o *Object[O]) Latest(cached O) O {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest(cached, cached.GetName())
}

func (o *Object[O]) latest(cached O, name string) O {
	var none O
	if o.written == none || o.written.GetName() != name {
		return cached
	}
	if cached == none && time.Since(o.at) <= belief || cached != none && older(cached.GetResourceVersion(), o.written.GetResourceVersion()) {
		return o.written
	}
	o.forget()
	return cached
}

// Saw notes that an object was created or updated. It reports whether the event tells nothing new: it is that of the
// write, or from before it.
func (o *Object[O]) Saw(event metav1.Object) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(event)
	if !o.wrote(event) {
		return false
	}
	is, was := event.GetResourceVersion(), o.written.GetResourceVersion()
	if older(is, was) {
		return true
	}
	o.forget()
	return is == was
}

// Deleted notes that an object was deleted. It reports whether the event tells nothing new: it is that of an object which
// was there before the one that was written.
func (o *Object[O]) Deleted(event metav1.Object) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(event)
	if !o.wrote(event) {
		return false
	}
	// An event of the same object can have an older version, and no other follows it.
	if event.GetUID() != o.written.GetUID() && older(event.GetResourceVersion(), o.written.GetResourceVersion()) {
		return true
	}
	o.forget()
	return false
}

// wrote reports whether anything is remembered of an object.
func (o *Object[O]) wrote(of metav1.Object) bool {
	var none O
	return o.written != none && o.written.GetName() == of.GetName()
}

func (o *Object[O]) forget() {
	var none O
	o.written = none
}

// note remembers the version of an event.
func (o *Object[O]) note(event metav1.Object) {
	is := version{event.GetName(), event.GetResourceVersion()}
	if i := o.lastOf(event); i >= 0 {
		if older(is.resourceVersion, o.seen[i].resourceVersion) {
			return
		}
		o.seen = slices.Delete(o.seen, i, i+1)
	}
	o.seen = append(o.seen, is)
	o.seen = slices.Delete(o.seen, 0, max(0, len(o.seen)-maxSeen))
}

// lastOf returns the place in seen of the last event of an object; -1 if there was none.
func (o *Object[O]) lastOf(of metav1.Object) int {
	return slices.IndexFunc(o.seen, func(v version) bool { return v.name == of.GetName() })
}

// A Version is that of an object as this process last wrote or read it. The zero Version is not known.
type Version string

// Set notes what this process wrote or read.
func (v *Version) Set(o metav1.Object) { *v = Version(o.GetResourceVersion()) }

// Edited reports whether a cache shows a later version of the object, so that another writer has changed it. A Version
// that is not known becomes the one that is shown.
func (v *Version) Edited(cached metav1.Object) bool {
	if *v == "" {
		v.Set(cached)
	}
	return older(string(*v), cached.GetResourceVersion())
}

// older reports whether resourceVersion a is older than b. Versions that cannot be compared count as not older: the
// cache is then believed.
func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}
