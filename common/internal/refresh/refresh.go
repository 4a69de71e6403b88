// Package refresh carries events about stores to the controllers that reconcile the affected objects.
package refresh

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// An Event reports that reads from a store might have another result than before.
type Event struct {
	Kind  provider.Kind
	Store types.NamespacedName
	// Namespace is the one whose credentials for the store have changed, if credentials are looked up in the
	// namespace of the referring object. It is empty for credentials in the store's own namespace.
	Namespace string
}

// Missed is a change of a secret that an event source did not report.
type Missed struct {
	// By is the Kind and name of the event source, separated by a slash.
	By string
	// Namespace is that of an object that reads the secret.
	Namespace string
}

// A Bus delivers each Event, Missed and *Change to the controllers that subscribe to its type. The zero Bus is ready for use.
type Bus struct {
	mu   sync.Mutex
	subs []func(context.Context, any)
}

// On has f called with the events of one type. It must not keep them.
func On[E any](b *Bus, f func(context.Context, E)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = append(b.subs, func(ctx context.Context, event any) {
		if e, ok := event.(E); ok {
			f(ctx, e)
		}
	})
}

// Publish delivers an event, and returns when the controllers have queued the objects that it concerns.
func (b *Bus) Publish(ctx context.Context, event any) {
	b.mu.Lock()
	subs := b.subs
	b.mu.Unlock()
	for _, f := range subs {
		f(ctx, event)
	}
}
