// Package room bounds the memory for the Secrets and ConfigMaps that templates, credentials and pushes read. Tenants
// choose their number and size.
package room

import (
	"context"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Limits in bytes.
const (
	// Total limits all values that are read at the same time.
	Total = 8 << 20
	// One is the maximum size of one object.
	One = 1 << 20
)

// A Reader gives access to the objects, as far as there is room.
type Reader struct {
	client client.Reader
	room   *semaphore.Weighted
}

// NewReader returns a Reader of objects that c reads.
func NewReader(c client.Reader) *Reader {
	return &Reader{client: c, room: semaphore.NewWeighted(Total)}
}

// Hold waits until there is room for bytes, at most Total. The caller must Release the result, and must not wait for a store or
// for another Hold before that.
func (r *Reader) Hold(ctx context.Context, bytes int64) (*Held, error) {
	bytes = min(bytes, Total)
	if err := r.room.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return &Held{Reader: r.client, room: r.room, bytes: bytes}, nil
}

// Held reads objects for which there is room.
type Held struct {
	client.Reader

	room  *semaphore.Weighted
	bytes int64
}

// Keep gives back the room that exceeds bytes, because all was read.
func (h *Held) Keep(bytes int64) {
	if more := h.bytes - bytes; more > 0 {
		h.room.Release(more)
		h.bytes = bytes
	}
}

// Release gives back all room.
func (h *Held) Release() { h.Keep(0) }
