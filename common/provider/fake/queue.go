package fake

import (
	"context"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// A Queue is an event source with the messages that a test sends. The zero Queue is empty.
type Queue struct {
	Messages[provider.Message]
	// Hold replaces provider.Hold; 0 means that.
	Hold time.Duration

	mu sync.Mutex
	// refusal is the error of Receive; nil: none.
	refusal error
	acked   int
}

// Send adds messages.
func (q *Queue) Send(messages ...provider.Message) {
	for _, m := range messages {
		m.Sent = time.Now()
		q.Messages.Send(m)
	}
}

// Changed sends a message for each key: its secret in a FakeStore has a new version, which may be empty.
func (q *Queue) Changed(version string, keys ...string) {
	for _, key := range keys {
		q.Send(provider.Message{Events: []provider.Event{{Kind: "FakeStore", Names: []string{key}, Version: version}}})
	}
}

// Refuse makes Receive fail; nil ends that.
func (q *Queue) Refuse(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.refusal = err
}

// Acked returns the number of messages that were acknowledged.
func (q *Queue) Acked() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.acked
}

// Receive implements provider.EventSource.
func (q *Queue) Receive(ctx context.Context) ([]provider.Message, error) {
	for start := time.Now(); ; {
		messages, err := q.take()
		if len(messages) > 0 || err != nil || time.Since(start) > time.Second || !provider.Sleep(ctx, 10*time.Millisecond) {
			return messages, err
		}
	}
}

// take returns up to ten messages, and holds them.
func (q *Queue) take() (messages []provider.Message, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusal != nil {
		return nil, q.refusal
	}
	for _, d := range q.Take(10, q.hold()) {
		d.Body.Receipt = d.Receipt
		messages = append(messages, d.Body)
	}
	return messages, nil
}

func (q *Queue) hold() time.Duration {
	if q.Hold > 0 {
		return q.Hold
	}
	return provider.Hold
}

// Extend implements provider.EventSource.
func (q *Queue) Extend(_ context.Context, messages []provider.Message) error {
	for _, m := range messages {
		q.Hide(m.Receipt, q.hold())
	}
	return nil
}

// Ack implements provider.EventSource.
func (q *Queue) Ack(_ context.Context, messages []provider.Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range messages {
		if q.Remove(m.Receipt) {
			q.acked++
		}
	}
	return nil
}

// EventSourceKinds returns both event source Kinds of this Server.
func (s *Server) EventSourceKinds() []provider.Kind {
	return []provider.Kind{
		provider.EventSourceKindOf(func(_ context.Context, o *v1alpha1.FakeEventSource, _ provider.Credentials) (provider.EventSource, error) {
			return s.queue(o.Spec.Backend)
		}),
		provider.ClusterEventSourceKindOf(func(_ context.Context, o *v1alpha1.ClusterFakeEventSource, _ provider.Credentials) (provider.EventSource, error) {
			return s.queue(o.Spec.Backend)
		}),
	}
}

func (s *Server) queue(backend string) (provider.EventSource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.backends[backend]
	if !ok {
		return nil, provider.NewError(provider.Invalid, "spec.backend: no backend %q is set up", backend)
	}
	return &b.Queue, nil
}

// scopeOf returns the settings of a store by which keysOf differs.
func scopeOf(o provider.Object) any { return o.GetName() }

// keysOf returns the keys of the secret of an event in a store, which are its names. The place is the name of a store.
func keysOf(o provider.Object, e provider.Event) []string {
	if e.Place != "" && e.Place != o.GetName() {
		return nil
	}
	return e.Names
}
