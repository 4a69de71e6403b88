// Package refresh carries news of stores, from whoever has them to the controllers that have their objects looked at
// again.
package refresh

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// buffer is how many events wait for a controller before those who publish wait, too.
const buffer = 1024

// An Event says that a store may yield something else than before.
type Event struct {
	Kind  provider.Kind
	Store types.NamespacedName
	// Namespace is the one whose credentials for the store have changed, if they are looked up there. It is empty for
	// credentials beside the store.
	Namespace string
}

// A Bus takes events to all controllers. The zero Bus is ready to use.
type Bus struct {
	mu   sync.Mutex
	subs []chan event.TypedGenericEvent[Event]
}

// Source returns a source of all events that are published from now on. A controller must read it.
func (b *Bus) Source(h handler.TypedEventHandler[Event, reconcile.Request]) source.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := make(chan event.TypedGenericEvent[Event], buffer)
	b.subs = append(b.subs, c)
	return source.TypedChannel(c, h)
}

// Publish tells all controllers.
func (b *Bus) Publish(e Event) {
	b.mu.Lock()
	subs := b.subs
	b.mu.Unlock()
	for _, c := range subs {
		c <- event.TypedGenericEvent[Event]{Object: e}
	}
}
