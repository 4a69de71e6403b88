package dispatch

import (
	"context"
	"sync"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Connect makes a client. It is called when the client is asked for the first time.
type Connect[C any] func(ctx context.Context) (C, error)

// A Connection is one client that many use at the same time: a provider.Client or a provider.Generator.
type Connection[C any] struct {
	connect Connect[C]
	// busy reports, under mu, whether the client has users that lent does not count.
	busy func() bool

	mu sync.Mutex
	// client is nil until it is connected, and after it was closed.
	client C
	// lent counts those who use the client by themselves.
	lent    int
	retired bool
}

// NewConnection returns a Connection to the client that connect makes.
func NewConnection[C any](connect Connect[C]) *Connection[C] {
	return &Connection[C]{connect: connect, busy: func() bool { return false }}
}

// Client returns the connected client, connecting first if need be. It returns when ctx ends even
// if the provider's code does not. The client is not closed before ctx ends.
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
		// Somebody else was faster.
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

// Retire lets uses under way finish, and closes the client after the last. New uses still work; whoever
// holds a Connection that was retired should get a new one.
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
