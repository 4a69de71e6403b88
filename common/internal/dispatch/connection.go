package dispatch

import (
	"context"
	"sync"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Connect creates a client. It is called when the client is first needed.
type Connect[C any] func(ctx context.Context) (C, error)

// A Connection is one client, a provider.Client or a provider.Generator, with many concurrent users.
type Connection[C any] struct {
	connect Connect[C]
	// busy reports whether the client has users that lent does not count. It is called under mu.
	busy func() bool

	mu sync.Mutex
	// client is nil until it is connected, and after it was closed.
	client C
	// lent counts the callers of Client whose context has not ended.
	lent    int
	retired bool
}

// NewConnection returns a Connection to the client that connect creates.
func NewConnection[C any](connect Connect[C]) *Connection[C] {
	return &Connection[C]{connect: connect, busy: func() bool { return false }}
}

// Client returns the connected client, and connects first if necessary. It returns when ctx ends, even if the
// provider's code does not. The client is not closed before ctx ends.
func (n *Connection[C]) Client(ctx context.Context) (C, error) {
	n.mu.Lock()
	if n.connectedLocked() {
		defer n.mu.Unlock()
		n.lendLocked(ctx)
		return n.client, nil
	}
	n.mu.Unlock()
	return Within(ctx, func() (C, error) { return n.open(ctx) })
}

func (n *Connection[C]) connectedLocked() bool { return any(n.client) != nil }

func (n *Connection[C]) open(ctx context.Context) (C, error) {
	c, err := n.connect(ctx)
	if err != nil {
		var none C
		return none, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lendLocked(ctx)
	if n.connectedLocked() {
		// A concurrent call has connected first.
		go func() { _ = provider.Close(c) }()
		return n.client, nil
	}
	n.client = c
	return c, nil
}

func (n *Connection[C]) lendLocked(ctx context.Context) {
	n.lent++
	context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.lent--
		n.closeIfIdleLocked()
	})
}

// Retire closes the client after the uses under way have ended. New uses still work, but a holder of a retired
// Connection should get a new one.
func (n *Connection[C]) Retire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.retired = true
	n.closeIfIdleLocked()
}

func (n *Connection[C]) closeIfIdleLocked() {
	if !n.retired || n.lent > 0 || n.busy() || !n.connectedLocked() {
		return
	}
	c := n.client
	var none C
	n.client = none
	go func() { _ = provider.Close(c) }()
}
