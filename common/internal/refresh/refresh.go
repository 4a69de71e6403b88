// Package refresh carries news of stores, from whoever has them to the controllers that have their objects looked at
// again.
package refresh

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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

// A Bus takes events to the controllers that want them. The zero Bus is ready to use.
type Bus struct {
	mu   sync.Mutex
	subs []subscriber
}

type subscriber struct {
	wants  func(Event) bool
	events chan event.TypedGenericEvent[*Event]
}

// Source returns a source of the events that a controller wants and that are published from now on. The controller must
// read it.
func (b *Bus) Source(wants func(Event) bool, h func(ctx context.Context, e Event, q workqueue.TypedRateLimitingInterface[reconcile.Request])) source.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := subscriber{wants, make(chan event.TypedGenericEvent[*Event], buffer)}
	b.subs = append(b.subs, s)
	return source.TypedChannel(s.events, handler.TypedFuncs[*Event, reconcile.Request]{
		GenericFunc: func(ctx context.Context, e event.TypedGenericEvent[*Event], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			h(ctx, *e.Object, q)
		},
	})
}

// Publish tells the controllers that want an event.
func (b *Bus) Publish(e Event) {
	b.mu.Lock()
	subs := b.subs
	b.mu.Unlock()
	for _, s := range subs {
		if s.wants(e) {
			s.events <- event.TypedGenericEvent[*Event]{Object: &e}
		}
	}
}
