package generated

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// memory is what this process remembers of objects between two reconciles. It is safe for concurrent use.
type memory struct {
	// random returns numbers in [0, 1) for jitter.
	random func() float64

	mu      sync.Mutex
	objects map[request]*object
}

// object returns what is remembered of an object.
func (m *memory) object(req request, uid types.UID) *object {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.objects[req]
	if o == nil {
		o = &object{attempts: attempts{random: m.random}, made: map[string]made{}}
		m.objects[req] = o
	}
	if o.uid != uid {
		o.uid = uid
		o.reset()
	}
	return o
}

// peek returns what is remembered of an object; nil for nothing.
func (m *memory) peek(req request) *object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[req]
}

// known returns the objects of which anything is remembered.
func (m *memory) known() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.objects))
}

// forget drops what is remembered of an object, unless it holds values that no part does: they have to be
// revoked first.
func (m *memory) forget(req request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.objects[req]; o != nil && !o.burdened() {
		delete(m.objects, req)
	}
}

// object is what is remembered of one object. One worker at a time uses it; event handlers reach attempts only.
type object struct {
	attempts

	uid types.UID
	// part is the version of the part as this process last wrote or read it.
	part overlay.Version
	// misses counts the reconciles in a row that found their caches behind.
	misses int
	// told is what the status was last made to say, until the cache shows it.
	told handoff.Told

	// made are values that no part holds yet, by the ID of their generator. What cannot be kept now is not
	// made a second time.
	made map[string]made
	// carried are credentials of a part that somebody has deleted; the next part takes them on.
	carried []handoff.Retired
}

// made are values that no part holds yet.
type made struct {
	provider.Generated
	// version is what a part calls them, so that one that has them already is known.
	version   string
	generator handoff.Generator
	spec      string
	at        time.Time
	// cleans is true if the generator can revoke them.
	cleans bool
}

// burdened reports whether anything is to be revoked that no part tells of.
func (o *object) burdened() bool { return len(o.made)+len(o.carried) > 0 }

// settle forgets values that a part has: the answer to the write that kept them was lost.
func (o *object) settle(rec handoff.Record) {
	maps.DeleteFunc(o.made, func(_ string, m made) bool { return rec.Has(m.version) })
}

// stored forgets what a part holds now: values by the IDs of their generators, and what it was to take on.
func (o *object) stored(ids []string) {
	for _, id := range ids {
		delete(o.made, id)
	}
	o.carried = nil
}
