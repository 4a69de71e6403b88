// Package room reads the Secrets and ConfigMaps of tenants, for which it holds bytes of their quota. Tenants choose their number and size.
package room

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

// One is the maximum size of one object in bytes, with its metadata.
//
//limit:memory Secret or ConfigMap that is not read yet | unit=bytes | It counts as its maximum size until it is read.
const One = 3 << 19

// A Reader gives access to the objects, as far as the quotas of their tenants allow.
type Reader struct {
	client client.Reader
	quotas *quota.Quotas
}

// NewReader returns a Reader of objects that c reads.
func NewReader(c client.Reader, q *quota.Quotas) *Reader { return &Reader{c, q} }

// Hold waits until a tenant may hold bytes. A walk has no slot meanwhile. The caller must Release the result. The error is kit.ErrParked,
// kit.ErrInterrupted or that of ctx.
func (r *Reader) Hold(ctx context.Context, tenant string, bytes int64) (*Held, error) {
	h := r.newHeld(tenant)
	return h.until(h.Grow(ctx, bytes))
}

// HoldIn is Hold for a caller that has no slot.
func (r *Reader) HoldIn(ctx context.Context, tenant string, bytes int64) (*Held, error) {
	h := r.newHeld(tenant)
	return h.until(h.held.Grow(ctx, bytes, bytes))
}

func (r *Reader) newHeld(name string) *Held {
	t := r.quotas.Tenant(name)
	h := &Held{Reader: r.client, tenant: name, quota: t, held: t.Holder(nil)}
	h.Release = sync.OnceFunc(func() {
		h.held.Release()
		t.EndUse()
	})
	return h
}

// Held reads objects for which bytes are held.
type Held struct {
	client.Reader

	// Release gives back all bytes. A second call does nothing.
	Release func()

	tenant string
	quota  *quota.Tenant
	held   *quota.Held
}

// List implements client.Reader. It waits until the tenant may make one more list.
func (h *Held) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := h.quota.List(ctx); err != nil {
		return err
	}
	return h.Reader.List(ctx, list, opts...)
}

// until returns a Held that has its bytes, unless there is an error.
func (h *Held) until(err error) (*Held, error) {
	if err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

// Grow waits until bytes are held in all, as Hold does.
func (h *Held) Grow(ctx context.Context, bytes int64) error {
	if h.held.TryGrow(bytes) {
		return nil
	}
	return kit.Wait(ctx, []kit.Place{{Tenant: h.tenant}}, func(ctx context.Context) error { return h.held.Grow(ctx, bytes, bytes) })
}

// Keep gives back what exceeds bytes, because all was read.
func (h *Held) Keep(bytes int64) { h.held.Keep(bytes) }
