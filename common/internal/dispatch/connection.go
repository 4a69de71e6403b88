package dispatch

import (
	"context"
	"sync"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Connect connects to a provider. It is called when the connection is first needed.
// All answers to the Link count for the tenant.
type Connect func(ctx context.Context, t *quota.Tenant) (*provider.Link, error)

// A Connection is one Link with many concurrent users.
type Connection struct {
	connect Connect
	tenant  *quota.Tenant
	// endUse ends the use of the tenant.
	endUse func()
	// busy reports whether the Link has users that lent does not count. It is called under mu.
	busy func() bool

	mu sync.Mutex
	// link is nil until it is connected, and after it was closed.
	link *provider.Link
	// lent counts the callers of Link whose context has not ended.
	lent    int
	retired bool
}

// newConnection returns a Connection with the Link that connect creates. It uses the tenant until it is retired.
func newConnection(connect Connect, t *quota.Tenant) *Connection {
	return &Connection{connect: connect, tenant: t, endUse: sync.OnceFunc(t.EndUse), busy: func() bool { return false }}
}

// Link returns the Link, and connects first if necessary. It returns when ctx ends, even if the provider's code does not.
// The Link is not closed before ctx ends.
func (n *Connection) Link(ctx context.Context) (*provider.Link, error) {
	n.mu.Lock()
	if n.link != nil {
		defer n.mu.Unlock()
		n.lendLocked(ctx)
		return n.link, nil
	}
	n.mu.Unlock()
	return Within(ctx, func() (*provider.Link, error) { return n.open(ctx) })
}

func (n *Connection) open(ctx context.Context) (*provider.Link, error) {
	c, err := n.connect(ctx, n.tenant)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lendLocked(ctx)
	if n.link != nil {
		// A concurrent call has connected first.
		go func() { _ = c.Close() }()
		return n.link, nil
	}
	n.link = c
	return c, nil
}

func (n *Connection) lendLocked(ctx context.Context) {
	n.lent++
	context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.lent--
		n.closeIfIdleLocked()
	})
}

// Retire closes the Link after the uses under way have ended. New uses still work, but a holder of a retired
// Connection should get a new one. Calls under way count for the tenant until they have ended.
func (n *Connection) Retire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.retired = true
	n.closeIfIdleLocked()
}

func (n *Connection) closeIfIdleLocked() {
	if !n.retired || n.lent > 0 || n.busy() {
		return
	}
	n.endUse()
	if n.link == nil {
		return
	}
	c := n.link
	n.link = nil
	go func() { _ = c.Close() }()
}
