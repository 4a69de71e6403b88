// Package overlay lets a process see its own writes while its caches do not show them yet.
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

// belief is how long a written object is assumed to exist while the cache has no such object. After an interrupted
// watch, the cache might never show an object that was created and deleted during the interruption.
const belief = time.Minute

// maxSeen limits the remembered events, since the name can change any number of times. Without its deletion event, a
// deleted object is assumed to exist for the duration of belief.
//
//limit:objects Secrets whose last event is remembered for former values of `spec.target.name` of one object | The oldest is forgotten. Former stores are not remembered.
const maxSeen = 16

// An Object remembers the last write of this process to one object, whose name can change. It forgets the write once
// the cache shows it, or a later version. The zero Object is empty. It is safe for concurrent use.
//
// A written object needs only its name, uid, resourceVersion and the fields that the caller reads. It must not be
// changed afterwards.
type Object[O interface {
	comparable
	client.Object
}] struct {
	mu      sync.Mutex
	written O
	at      time.Time
	// seen holds the version of the last event for each name, in the order of the events. An event can arrive before
	// the answer to the write.
	seen []version
}

type version struct{ name, resourceVersion string }

// Wrote remembers an object as the API server returned it.
func (o *Object[O]) Wrote(written O) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := o.lastOf(written); i >= 0 && older(written.GetResourceVersion(), o.seen[i].resourceVersion) {
		o.forget() // The cache shows a later version than the write, perhaps a deletion.
		return
	}
	o.written, o.at = written, time.Now()
}

// Get reads an object from a cache into an empty one, and returns the later of that and the remembered write; nil if
// there is neither. It blocks events during the read: an event noted then would make a cached object from before it
// count as current.
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

// Latest returns the later of a cached object and the remembered write. Use it only if no event can have been noted
// since the cache was read.
func (o *Object[O]) Latest(cached O) O {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest(cached, cached.GetName())
}

// Later is Latest for a caller whose cached object may be older than one that another caller has. It forgets nothing.
func (o *Object[O]) Later(cached O) O {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none O
	if o.written != none && o.written.GetName() == cached.GetName() && older(cached.GetResourceVersion(), o.written.GetResourceVersion()) {
		return o.written
	}
	return cached
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

// Saw notes that an object was created or updated. It reports true if the event is that of the remembered write, or
// an older one.
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

// Deleted notes that an object was deleted. It reports true if the event is of a predecessor of the written object.
func (o *Object[O]) Deleted(event metav1.Object) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(event)
	if !o.wrote(event) {
		return false
	}
	// A deletion of the same object can have an older version, and is its last event.
	if event.GetUID() != o.written.GetUID() && older(event.GetResourceVersion(), o.written.GetResourceVersion()) {
		return true
	}
	o.forget()
	return false
}

// wrote reports whether a write to an object is remembered.
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

// lastOf returns the index in seen of the last event for an object's name; -1 if there is none.
func (o *Object[O]) lastOf(of metav1.Object) int {
	return slices.IndexFunc(o.seen, func(v version) bool { return v.name == of.GetName() })
}

// A Version is the resourceVersion that this process last wrote or read of an object. The zero Version is unknown.
type Version string

// Set remembers the version of an object that this process wrote or read.
func (v *Version) Set(o metav1.Object) { *v = Version(o.GetResourceVersion()) }

// Edited reports whether a cache shows a later version of the object, so that another writer has changed it. An
// unknown Version becomes that of the cache.
func (v *Version) Edited(cached metav1.Object) bool {
	if *v == "" {
		v.Set(cached)
	}
	return older(string(*v), cached.GetResourceVersion())
}

// older reports whether resourceVersion a is older than b. If they cannot be compared, it returns false, so that the
// cache counts.
func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}
