package externalsecret

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// object is the controller's memory of one ExternalSecret. Only the walk over it uses it; the fields that event
// handlers also use have their own locks.
type object struct {
	// next is the time of the next periodic refresh, good the time of the last successful one.
	next, good time.Time
	attempts   kit.Attempts
	// content is a hash of the spec that was synced last, without the fields that affect neither the values nor where
	// they are written; generation is the generation of that spec.
	content    string
	generation int64
	// created is the uid of the Secret that an ExternalSecret of this name created.
	created types.UID
	// blocked are the wanted keys that other ExternalSecrets hold. wantsOnlyBlocked is true if the object wants no other keys.
	blocked          []string
	wantsOnlyBlocked bool
	misses           queue.Misses
	revertBackoff    policy.RevertBackoff
	// since is when the object began to wait for contributions of other operators; zero if it does not wait. It is
	// real time, like the time of Leases, and not Options.Now.
	since   time.Time
	signals signals
	// status and secret are the last writes of this process, kept until the caches show them.
	status overlay.Object[*v1alpha1.ExternalSecret]
	secret overlay.Object[*metav1.PartialObjectMetadata]
}

// signals are what event handlers use, too.
type signals struct {
	// contributed is true if several operators contribute to the object.
	contributed atomic.Bool
	// blocked is the name of the target that another client must change first; nil or empty if there is none.
	blocked atomic.Pointer[string]
	// lacks is true if the last answer lacked some values. `readAgain` is true once the provider must be read again: a
	// store has changed and may have them, or another operator has refreshed the object.
	lacks, readAgain atomic.Bool
	// templates are the template sources as last seen.
	templates templateStates
}

// blockedAt returns the name of the target that another client must change first; empty if there is none.
func (s *signals) blockedAt() string {
	if name := s.blocked.Load(); name != nil {
		return *name
	}
	return ""
}

// objects is the memory of all objects that this process has reconciled.
type objects struct {
	kit.Memory[types.NamespacedName, object]

	mu sync.Mutex
	// changes holds, by object, the change that is not yet written to its Secret.
	// Bound: one per ExternalSecret.
	changes map[types.NamespacedName]change
}

// change is the time when this process first saw a change, and the generation after it.
type change struct {
	at         time.Time
	generation int64
}

// waiting returns the objects of a namespace that wait for a change of their target.
func (o *objects) waiting(namespace string) []types.NamespacedName {
	waiting := o.Keys(func(obj *object) bool { return obj.signals.blockedAt() != "" })
	return slices.DeleteFunc(waiting, func(key types.NamespacedName) bool { return key.Namespace != namespace })
}

// contributedTo returns the objects known to have contributions of several operators.
func (o *objects) contributedTo() []types.NamespacedName {
	return o.Keys(func(obj *object) bool { return obj.signals.contributed.Load() })
}

// changed records that an object was created or changed, unless an earlier change is not yet written to its Secret.
func (o *objects) changed(key types.NamespacedName, generation int64, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changes == nil {
		o.changes = map[types.NamespacedName]change{}
	}
	if _, waits := o.changes[key]; !waits {
		o.changes[key] = change{now, generation}
	}
}

// taken returns when the change that led to a generation was first seen, and drops it; zero if none was recorded.
func (o *objects) taken(key types.NamespacedName, generation int64) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	c, ok := o.changes[key]
	if !ok || c.generation > generation {
		return time.Time{}
	}
	o.drop(key)
	return c.at
}

// unchanged drops the change of an object that is deleted or that another replica has handled. This
// process might never reconcile such an object.
func (o *objects) unchanged(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(key)
}

// drop removes a change. A map does not shrink, so an empty one is dropped. The caller must hold mu.
func (o *objects) drop(key types.NamespacedName) {
	if delete(o.changes, key); len(o.changes) == 0 {
		o.changes = nil
	}
}

// forget drops an object that is deleted or that this operator does not claim.
func (o *objects) forget(key types.NamespacedName) {
	o.unchanged(key)
	o.Forget(key)
}
