package contribution

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// object is the controller's memory of one ExternalSecret. Only the walk over it uses it; the fields that event
// handlers also use have their own locks.
type object struct {
	// next is the time of the next periodic refresh.
	next     time.Time
	attempts kit.Attempts
	misses   queue.Misses
	// failing is true while the contribution could not be read or stored.
	failing bool
	// unreported is true while the status does not yet show that the part holds other values.
	unreported bool
	// lastReport is the last report about the part in the status.
	lastReport handoff.LastReport
	part       ownPart
}

// ownPart is this process's memory of the part that it writes.
type ownPart struct {
	last overlay.Object[*metav1.PartialObjectMetadata]
	// version is the resourceVersion of the part that this process last wrote or saw.
	version overlay.Version
	// wrote is the uid of the part that this process wrote last.
	wrote types.UID
}

// get returns the metadata of the part, from the cache or from the last write if that is newer; nil if there is none.
func (p *ownPart) get(ctx context.Context, cache client.Reader, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	return p.last.Get(ctx, cache, key, resolve.SecretMetadata())
}

// set records the part after a write.
func (p *ownPart) set(m *metav1.PartialObjectMetadata) {
	p.last.Wrote(m)
	p.version.Set(m)
	p.wrote = m.UID
}

// lost records that a part was deleted.
func (p *ownPart) lost(m metav1.Object) { p.last.Deleted(m) }
