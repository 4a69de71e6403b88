package externalsecret

import (
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/memory"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
)

// object is what the controller remembers of one ExternalSecret. One worker at a time uses it; what event handlers use,
// too, guards itself.
type object struct {
	// next is the time of the next periodic refresh, good that of the last good one.
	next, good time.Time
	attempts   fetch.Attempts
	// served is what was last asked for and is served.
	served content
	// created is the uid of the Secret that an object of this name created.
	created types.UID
	yields  yields
	// templates are the template sources that were seen last.
	templates templateStates
	misses    queue.Misses
	fight     policy.Fight
	// since is when the object began to wait for what other operators contribute, in real time as that of Leases; zero if
	// it does not.
	since time.Time
	// shared is true if several operators contribute to the object.
	shared atomic.Bool
	gone   gone
	// status and secret are those that this process wrote last, until the caches show them.
	status overlay.Object[*v1alpha1.ExternalSecret]
	secret overlay.Object[*metav1.PartialObjectMetadata]
}

// gone is what is known of values that do not exist.
type gone struct {
	// lacks is true if the last answer was without some; mended once a store has changed since, which may have them, or another
	// operator has had an answer.
	lacks, mended atomic.Bool
}

// content is the hash of a spec that a generation had, but for what bears neither on values nor on where they go.
type content struct {
	generation int64
	hash       string
}

// yields are the keys that other ExternalSecrets hold.
type yields struct {
	keys []string
	// all is true if the object wants no others.
	all bool
}

// objects are those that this process has looked at.
type objects struct {
	memory.Objects[object]

	mu sync.Mutex
	// awaits holds, by object, the name of the target that somebody else must change.
	awaits map[types.NamespacedName]string
	// changes holds, by object, the change that has yet to reach its Secret.
	changes map[types.NamespacedName]change
}

// change is when this process has seen a change first, and the generation that it led to.
type change struct {
	at         time.Time
	generation int64
}

func newObjects() *objects {
	return &objects{
		Objects: memory.Objects[object]{Drop: func(o *object) { o.attempts.Drop() }},
		awaits:  map[types.NamespacedName]string{},
	}
}

// awaiting returns the objects of a namespace that await a change of their target.
func (o *objects) awaiting(namespace string) []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []types.NamespacedName
	for key := range o.awaits {
		if key.Namespace == namespace {
			keys = append(keys, key)
		}
	}
	return keys
}

// contributedTo returns the objects to which several operators contribute, as far as they are known.
func (o *objects) contributedTo() []types.NamespacedName {
	return o.Keys(func(obj *object) bool { return obj.shared.Load() })
}

// await notes the target whose change is awaited, or with an empty name that none is, and returns what
// was noted before.
func (o *objects) await(key types.NamespacedName, target string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.awaits[key]
	if delete(o.awaits, key); target != "" {
		o.awaits[key] = target
	}
	return was
}

// changed notes that an object was created or changed, unless an earlier change has yet to reach its Secret.
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

// taken returns since when the change of an object was waiting that a generation brought, and drops it; zero
// if none was.
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

// unchanged drops the change of an object that is gone, or that another replica has seen to: no worker of this one may
// ever look at it.
func (o *objects) unchanged(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(key)
}

// drop forgets a change. A map keeps the room that it once needed, so an empty one goes. The mutex must be held.
func (o *objects) drop(key types.NamespacedName) {
	if delete(o.changes, key); len(o.changes) == 0 {
		o.changes = nil
	}
}

// forget drops an object that is gone or not ours.
func (o *objects) forget(key types.NamespacedName) {
	o.unchanged(key)
	o.Forget(key)
}
