package contribution

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/fetch"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/overlay"
	"github.com/direct-secrets/direct-secrets/common/internal/queue"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
)

// object is what the controller remembers of one ExternalSecret. One worker at a time uses it; what event handlers use,
// too, guards itself.
type object struct {
	// next is the time of the next periodic refresh.
	next     time.Time
	attempts fetch.Attempts
	misses   queue.Misses
	// failing is true while what is to be contributed could not be read or stored.
	failing bool
	// untold is true while the status has yet to say that the part holds other values.
	untold bool
	// told is what the status was last made to say about the part.
	told handoff.Told
	part ownPart
}

// ownPart is what this process knows of the part that it writes.
type ownPart struct {
	last overlay.Object[*metav1.PartialObjectMetadata]
	// version is that of the part as this process last wrote or saw it.
	version overlay.Version
	// wrote is the uid of the part that this process wrote last.
	wrote types.UID
}

// get returns the metadata of the part, from the cache or as it was just written; nil if there is none.
func (p *ownPart) get(ctx context.Context, cache client.Reader, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	return p.last.Get(ctx, cache, key, resolve.SecretMetadata())
}

// set notes the part as it was just written.
func (p *ownPart) set(m *metav1.PartialObjectMetadata) {
	p.last.Wrote(m)
	p.version.Set(m)
	p.wrote = m.UID
}

// lost notes that a part is gone.
func (p *ownPart) lost(m metav1.Object) { p.last.Deleted(m) }
