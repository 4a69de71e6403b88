package externalsecret

import (
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// object is what the loop remembers of one ExternalSecret between two reconciles. All of it can be
// lost without harm: a restart starts empty.
type object struct {
	mu sync.Mutex

	uid types.UID
	// next is the time of the next periodic refresh, good that of the last good one.
	next, good time.Time
	// notBefore holds a retry back; it counts for one generation and refresh request. It is real time, as that of the
	// queue, and not that of Options.Now.
	notBefore time.Time
	attempt   attempt
	fetch     *reading
	// content is the hash of the spec, but for cleanupPolicy, that generation had.
	content    string
	generation int64
	// created is the uid of the Secret that an object of this name created.
	created types.UID
	// yielded are the keys that other ExternalSecrets hold; yieldsAll is true if it wants no others.
	yielded   []string
	yieldsAll bool
	templates templateStates
	// misses counts the passes in a row under which the world has moved on.
	misses int
	fight  policy.Fight
	// since is when the object began to wait for what other operators contribute, in real time as that of Leases; zero if
	// it does not.
	since time.Time

	// shared is true if several operators contribute to the object.
	shared atomic.Bool
	// contributes is true if another operator claims the object, and this one contributes to it.
	contributes atomic.Bool
	// failing is true while what is to be contributed could not be read or kept.
	failing bool
	// untold is true while the status has yet to say that the part holds other values.
	untold bool
	// told is what the status was last made to say about the part.
	told *handoff.Told
	// part is the part as this process wrote it last, until the cache shows it; partSeen is the resourceVersion
	// of the part as this process last wrote or saw it.
	part     *metav1.PartialObjectMetadata
	partAt   time.Time
	partSeen string
	// wrote is the uid of the part that this process wrote last.
	wrote types.UID

	// What this process wrote last, until the caches show it.
	status     *v1alpha1.ExternalSecretStatus
	statusSeen string
	secret     *metav1.PartialObjectMetadata
	secretAt   time.Time
	// events holds, by name, the resourceVersions of the Secrets of which an event came last.
	events map[string]string
}

// overlaid is how long a Secret that we wrote is believed to be there while the cache has none. A watch
// that was interrupted may never show a Secret that came and went meanwhile.
const overlaid = time.Minute

// attempt identifies what a person asked for.
type attempt struct {
	generation int64
	// metadata is the hash of the labels and annotations.
	metadata string
	request  string
}

type objects struct {
	mu sync.Mutex
	m  map[types.NamespacedName]*object
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
	return &objects{m: map[types.NamespacedName]*object{}, awaits: map[types.NamespacedName]string{}}
}

// get returns the memory of an object, a fresh one if its uid has changed.
func (o *objects) get(key types.NamespacedName, uid types.UID) *object {
	o.mu.Lock()
	defer o.mu.Unlock()
	old := o.m[key]
	if old != nil && old.uid == uid {
		return old
	}
	obj := &object{uid: uid}
	if old != nil {
		old.forget()
	}
	o.m[key] = obj
	return obj
}

func (o *objects) peek(key types.NamespacedName) *object {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.m[key]
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

// shared returns the objects to which several operators contribute, as far as they are known.
func (o *objects) shared() []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []types.NamespacedName
	for key, obj := range o.m {
		if obj.shared.Load() {
			keys = append(keys, key)
		}
	}
	return keys
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
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(key)
	if obj := o.m[key]; obj != nil {
		obj.forget()
		delete(o.m, key)
	}
}

func (o *object) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fetch != nil {
		o.fetch.drop()
		o.fetch = nil
	}
}

// hold keeps back the next try of an attempt.
func (o *object) hold(until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notBefore = until
}

// begin returns how long an attempt is still held back, and whether it is the same as the last;
// another one is not held back.
func (o *object) begin(a attempt) (wait time.Duration, again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if again = o.attempt == a; !again {
		o.attempt, o.notBefore = a, time.Time{}
	}
	return time.Until(o.notBefore), again
}

// version returns the resourceVersion that a patch of the status must find.
func (o *object) version(es *v1alpha1.ExternalSecret) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.status == nil {
		return es.ResourceVersion
	}
	return o.statusSeen
}

// latest returns the status to go by: that of the cache, or the one that we wrote if the cache is
// still behind it.
func (o *object) latest(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecretStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latestLocked(es)
}

// whileLocked reads a cache while no event of it can be noted. Otherwise an event between the read
// and the look at what we wrote would have us forget our write, and believe a cache that was read
// before it.
func (o *object) whileLocked(read func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return read()
}

func (o *object) latestLocked(es *v1alpha1.ExternalSecret) *v1alpha1.ExternalSecretStatus {
	if o.status == nil {
		return &es.Status
	}
	if !older(es.ResourceVersion, o.statusSeen) {
		o.status, o.statusSeen = nil, ""
		return &es.Status
	}
	return o.status
}

// wroteStatus remembers a status until the cache shows it.
func (o *object) wroteStatus(es *v1alpha1.ExternalSecret) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status, o.statusSeen = es.Status.DeepCopy(), es.ResourceVersion
}

// sawStatus forgets the status that we wrote once the cache shows it or a later one.
func (o *object) sawStatus(resourceVersion string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.status != nil && !older(resourceVersion, o.statusSeen) {
		o.status, o.statusSeen = nil, ""
	}
}

// latestSecretLocked returns the Secret to go by, cached or just written; nil if there is none.
func (o *object) latestSecretLocked(cached *metav1.PartialObjectMetadata, name string) *metav1.PartialObjectMetadata {
	if o.secret == nil || o.secret.Name != name {
		return cached
	}
	known := cached != nil && !older(cached.ResourceVersion, o.secret.ResourceVersion)
	if known || (cached == nil && time.Since(o.secretAt) > overlaid) {
		o.secret = nil
		return cached
	}
	return o.secret
}

func (o *object) wroteSecret(m *metav1.PartialObjectMetadata) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, ok := o.events[m.Name]; ok && older(m.ResourceVersion, last) {
		o.secret = nil // What came after our write is known before the write's answer, and maybe gone since.
		return
	}
	o.secret, o.secretAt = m, time.Now()
}

// latestPartLocked returns the part to go by, cached or just written; nil if there is none.
func (o *object) latestPartLocked(cached *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	if o.part == nil {
		return cached
	}
	known := cached != nil && !older(cached.ResourceVersion, o.part.ResourceVersion)
	if known || (cached == nil && time.Since(o.partAt) > overlaid) {
		o.part = nil
		return cached
	}
	return o.part
}

func (o *object) wrotePart(m *metav1.PartialObjectMetadata) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part, o.partAt, o.partSeen, o.wrote = m, time.Now(), m.ResourceVersion, m.UID
}

// lostPart is told that a part is gone.
func (o *object) lostPart(m metav1.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.part != nil && o.part.UID == m.GetUID() {
		o.part = nil
	}
}

// edited reports whether somebody else has written the part since this process has seen it.
func (o *object) edited(m *metav1.PartialObjectMetadata) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.partSeen == "" {
		o.partSeen = m.ResourceVersion
	}
	return older(o.partSeen, m.ResourceVersion)
}

// sawSecret is told of every event of a target and reports whether it is only the echo of our own
// write.
func (o *object) sawSecret(m metav1.Object, deleted bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, ok := o.events[m.GetName()]; !ok || !older(m.GetResourceVersion(), last) {
		if o.events == nil {
			o.events = map[string]string{}
		}
		o.events[m.GetName()] = m.GetResourceVersion()
	}
	if o.secret == nil || o.secret.Name != m.GetName() {
		return false
	}
	if older(m.GetResourceVersion(), o.secret.ResourceVersion) {
		// An event from before our write tells nothing, unless it is the last one that we get.
		if deleted && m.GetUID() == o.secret.UID {
			o.secret = nil
			return false
		}
		return true
	}
	echo := !deleted && m.GetResourceVersion() == o.secret.ResourceVersion
	o.secret = nil
	return echo
}

// older reports whether resourceVersion a is older than b. Versions that cannot be compared count
// as not older: the cache is then believed.
func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}
