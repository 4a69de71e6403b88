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

// memory holds the state of objects between two reconciles. It is safe for concurrent use.
type memory struct {
	// random returns numbers in [0, 1) for jitter.
	random func() float64

	mu      sync.Mutex
	objects map[request]*object
}

// object returns the state of an object.
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

// peek returns the state of an object; nil for none.
func (m *memory) peek(req request) *object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[req]
}

// known returns the objects that have a state.
func (m *memory) known() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.objects))
}

// forget drops the state of an object, unless it has values that no part holds: these must be revoked first.
func (m *memory) forget(req request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.objects[req]; o != nil && !o.burdened() {
		delete(m.objects, req)
	}
}

// object is the state of one object. Only one worker uses it at a time; event handlers use only attempts.
type object struct {
	attempts

	uid types.UID
	// part is the version of the part as this process last wrote or read it.
	part overlay.Version
	// misses counts reconciles in a row with outdated caches.
	misses int
	// told is what was last written to the status, until the cache shows it.
	told handoff.Told

	// made are values that no part holds yet, by the ID of their generator. Values that cannot be stored now are kept,
	// so that they are not made a second time.
	made map[string]made
	// carried are credentials of a part that a user deleted; the next part takes them over.
	carried []handoff.Retired
}

// made are values that no part holds yet.
type made struct {
	provider.Generated
	// version is the version for the record of the part. It identifies values that a part already has.
	version   string
	generator handoff.Generator
	spec      string
	at        time.Time
	// cleans is true if the generator can revoke them.
	cleans bool
	// proof is that of State.
	proof string
}

// burdened reports whether there are credentials to revoke that no part records.
func (o *object) burdened() bool { return len(o.made)+len(o.carried) > 0 }

// settle drops values that the part already has, because the response to its write was lost.
func (o *object) settle(rec handoff.Record) {
	maps.DeleteFunc(o.made, func(_ string, m made) bool { return rec.Has(m.version) })
}

// stored drops what the part now holds: values by the IDs of their generators, and carried credentials.
func (o *object) stored(ids []string) {
	for _, id := range ids {
		delete(o.made, id)
	}
	o.carried = nil
}
