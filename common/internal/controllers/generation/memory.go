package generation

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
)

// newMemory returns an empty memory of the objects of this controller. random returns numbers in [0, 1) for jitter. An object that is created again takes
// over the values that no part holds.
func newMemory(random func() float64) *kit.Memory[request, object] {
	return &kit.Memory[request, object]{New: func(uid types.UID, o *object) *object {
		if o == nil {
			o = &object{attempts: attempts{random: random}, made: map[string]made{}}
		}
		o.uid = uid
		o.reset()
		return o
	}}
}

// object is the state of one object. Only one worker uses it at a time; event handlers use only attempts.
type object struct {
	attempts

	uid types.UID
	// part is the version of the part as this process last wrote or read it.
	part overlay.Version
	// misses counts reconciles in a row with outdated caches.
	misses int
	// lastReport is what was last written to the status, until the cache shows it.
	lastReport handoff.LastReport

	// made are values that no part holds yet, by the ID of their generator. Values that cannot be stored now are kept,
	// so that they are not made a second time.
	made map[string]made
	// carried are credentials of a part that a user deleted; the next part takes them over.
	carried []handoff.Retired
}

// made are values that no part holds yet, with their entry for the record of the part. Its version identifies values
// that the part already has.
type made struct {
	handoff.Entry
	values map[string][]byte
}

// burdened reports whether there are credentials to revoke that no part records.
func (o *object) burdened() bool { return len(o.made)+len(o.carried) > 0 }

// dropHeld drops values that the part already has, because the response to its write was lost.
func (o *object) dropHeld(rec handoff.Record) {
	maps.DeleteFunc(o.made, func(_ string, m made) bool { return rec.Has(m.Version) })
}

// stored drops what the part now holds: values by the IDs of their generators, and carried credentials.
func (o *object) stored(ids []string) {
	for _, id := range ids {
		delete(o.made, id)
	}
	o.carried = nil
}
