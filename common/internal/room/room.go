// Package room bounds the memory for the Secrets and ConfigMaps that templates, credentials and pushes read. Tenants
// choose their number and size, so each has a room of its own.
package room

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
)

// Limits in bytes.
const (
	// Total limits what one tenant reads at the same time.
	Total = 8 << 20
	// One is the maximum size of one object, with its metadata.
	One = 3 << 19
)

// A Reader gives access to the objects, as far as their tenant has room.
type Reader struct {
	client client.Reader

	mu    sync.Mutex
	rooms map[string]*room
}

// room is that of a tenant.
type room struct {
	*semaphore.Weighted

	// users are those that hold a part of it, or wait for one.
	users int
}

// NewReader returns a Reader of objects that c reads.
func NewReader(c client.Reader) *Reader { return &Reader{client: c, rooms: map[string]*room{}} }

// Hold waits until a tenant has room for bytes, at most Total. A walk has no slot meanwhile. The caller must Release the result,
// and must not wait for a store or for another Hold before that. The error is kit.ErrParked, kit.ErrInterrupted or that of ctx.
func (r *Reader) Hold(ctx context.Context, tenant string, bytes int64) (*Held, error) {
	h := r.newHeld(tenant, bytes)
	if h.room.TryAcquire(h.bytes) {
		return h, nil
	}
	return h.acquired(kit.Wait(ctx, []kit.Place{{Tenant: tenant}}, func(ctx context.Context) error { return h.room.Acquire(ctx, h.bytes) }))
}

// HoldIn is Hold for a caller that has no slot.
func (r *Reader) HoldIn(ctx context.Context, tenant string, bytes int64) (*Held, error) {
	h := r.newHeld(tenant, bytes)
	return h.acquired(h.room.Acquire(ctx, h.bytes))
}

func (r *Reader) newHeld(tenant string, bytes int64) *Held {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := r.rooms[tenant]
	if is == nil {
		is = &room{Weighted: semaphore.NewWeighted(Total)}
		r.rooms[tenant] = is
	}
	is.users++
	return &Held{Reader: r.client, reader: r, room: is, tenant: tenant, bytes: min(bytes, Total)}
}

// Held reads objects for which there is room.
type Held struct {
	client.Reader

	reader *Reader
	room   *room
	tenant string
	bytes  int64
}

// acquired returns a Held that has its room, unless there is an error.
func (h *Held) acquired(err error) (*Held, error) {
	if err != nil {
		h.bytes = 0
		h.Release()
		return nil, err
	}
	return h, nil
}

// Keep gives back the room that exceeds bytes, because all was read.
func (h *Held) Keep(bytes int64) {
	if more := h.bytes - bytes; more > 0 {
		h.room.Release(more)
		h.bytes = bytes
	}
}

// Release gives back all room. A second call does nothing.
func (h *Held) Release() {
	h.Keep(0)
	if h.room == nil {
		return
	}
	h.reader.mu.Lock()
	defer h.reader.mu.Unlock()
	if h.room.users--; h.room.users == 0 {
		delete(h.reader.rooms, h.tenant)
	}
	h.room = nil
}
