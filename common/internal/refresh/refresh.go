// Package refresh carries events about stores from their sources to the controllers that reconcile the affected
// objects.
package refresh

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// buffer is the number of events that can wait for one controller before Publish blocks.
const buffer = 1024

// An Event reports that reads from a store might have another result than before.
type Event struct {
	Kind  provider.Kind
	Store types.NamespacedName
	// Namespace is the one whose credentials for the store have changed, if credentials are looked up in the
	// namespace of the referring object. It is empty for credentials in the store's own namespace.
	Namespace string
	// Missed says that an event source has missed a change. Then no other field is set. It is nil otherwise.
	Missed *Missed
}

// Missed is a change of a secret that an event source did not report.
type Missed struct {
	// By is the Kind and name of the event source, separated by a slash.
	By string
	// Namespace is that of an object that reads the secret.
	Namespace string
}

// A Bus delivers events to the controllers that subscribe to them. The zero Bus is ready for use.
type Bus struct {
	mu      sync.Mutex
	subs    []subscriber
	changed []func(context.Context, provider.Kind, *Change)
}

type subscriber struct {
	wants  func(Event) bool
	events chan event.TypedGenericEvent[*Event]
}

// Source returns a source of the events of b, published from now on, for which wants returns true. The controller must
// read it.
func Source[T comparable](b *Bus, wants func(Event) bool, h func(ctx context.Context, e Event, q workqueue.TypedRateLimitingInterface[T])) source.TypedSource[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := subscriber{wants, make(chan event.TypedGenericEvent[*Event], buffer)}
	b.subs = append(b.subs, s)
	return source.TypedChannel[*Event, T](s.events, handler.TypedFuncs[*Event, T]{
		GenericFunc: func(ctx context.Context, e event.TypedGenericEvent[*Event], q workqueue.TypedRateLimitingInterface[T]) {
			h(ctx, *e.Object, q)
		},
	})
}

// Publish delivers an event to the controllers that want it.
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

// OnChange has f called with each Change of secrets of the stores of a Kind. It must not keep the Change.
func (b *Bus) OnChange(f func(context.Context, provider.Kind, *Change)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed = append(b.changed, f)
}

// Notify tells the controllers of a Change, and returns when they have queued the objects that it concerns.
func (b *Bus) Notify(ctx context.Context, k provider.Kind, c *Change) {
	b.mu.Lock()
	all := b.changed
	b.mu.Unlock()
	for _, f := range all {
		f(ctx, k, c)
	}
}
