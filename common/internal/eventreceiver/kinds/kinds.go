// Package kinds makes EventReceiver and ClusterEventReceiver event sources: a signed request is a message.
package kinds

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/eventreceiver"
	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// batch is the maximum number of messages of one call to Receive.
	batch = 10
	// receiveFor is how long Receive waits. An earlier key is valid for as long after its change.
	receiveFor = 5 * time.Second
	// answers is the text for a receiver that works.
	answers = "signed requests are accepted"
)

// An Object is an EventReceiver or a ClusterEventReceiver.
type Object interface {
	provider.EventSourceObject

	// EventReceiverSpec returns the embedded spec.
	EventReceiverSpec() *v1alpha1.EventReceiverSpec
}

// module is the module that receives.
type module struct {
	at *eventreceiver.Endpoints
	// kinds are the Kinds of the module. namespaced is true if it reads no cluster Kinds.
	kinds      []provider.Kind
	namespaced bool
}

// New returns both Kinds for a module with other Kinds. It serves the objects whose first store is one of the module.
func New(at *eventreceiver.Endpoints, kinds []provider.Kind, namespaced bool) []provider.Kind {
	m := module{at, kinds, namespaced}
	return []provider.Kind{
		provider.EventSourceKindOf(func(ctx context.Context, o *v1alpha1.EventReceiver, creds provider.Credentials) (provider.EventSource, error) {
			return m.connect(ctx, o, creds)
		}).ServedIf(m.serves).WithAnswers(answers),
		provider.ClusterEventSourceKindOf(func(ctx context.Context, o *v1alpha1.ClusterEventReceiver, creds provider.Credentials) (provider.EventSource, error) {
			return m.connect(ctx, o, creds)
		}).ServedIf(m.serves).WithAnswers(answers),
	}
}

// serves reports whether the first store is one of the module. Otherwise another module reports what is wrong with the others.
func (m module) serves(o provider.Object) bool {
	r, ok := o.(Object)
	return ok && len(r.EventReceiverSpec().Stores) > 0 && m.index(r.EventReceiverSpec().Stores[0].Kind) >= 0
}

func (m module) index(kind string) int {
	return slices.IndexFunc(m.kinds, func(k provider.Kind) bool { return k.GoName() == kind })
}

// connect opens the path of an object.
func (m module) connect(ctx context.Context, o Object, creds provider.Credentials) (provider.EventSource, error) {
	spec := o.EventReceiverSpec()
	for i, s := range spec.Stores {
		if err := m.check(i, s.Kind); err != nil {
			return nil, err
		}
	}
	key, err := creds.SecretValue(ctx, spec.SecretRef)
	if err != nil {
		return nil, err
	}
	if n := len(key); n > 0 && (key[n-1] == '\n' || key[n-1] == '\r') {
		return nil, provider.NewError(provider.Invalid, "spec.secretRef: the key ends with a line end, with which senders do not sign; write the key to the Secret without it, for example by `kubectl create secret generic --from-literal`")
	}
	if len(key) < eventreceiver.MinKey {
		return nil, provider.NewError(provider.Invalid, "spec.secretRef: the key has %d bytes, and at least %d are required; use random bytes, for example of `openssl rand -hex 32`", len(key), eventreceiver.MinKey)
	}
	return &source{m.at.Open(Path(o), key, quota.Of(ctx)), spec.Stores}, nil
}

// check returns an error if spec.stores[i].kind is not the Kind of a store of the module.
func (m module) check(i int, kind string) error {
	n := m.index(kind)
	switch {
	case n < 0:
		return provider.NewError(provider.Invalid, "spec.stores[%d].kind: %s is not a Kind of the module of spec.stores[0]; name the stores of each module in an object of their own", i, kind)
	case m.kinds[n].Generator || m.kinds[n].EventSource:
		return provider.NewError(provider.Invalid, "spec.stores[%d].kind: %s is not the Kind of a store; name a store", i, kind)
	case m.kinds[n].Cluster && m.namespaced:
		return provider.NewError(provider.Invalid, "spec.stores[%d].kind: %s is a cluster Kind, and this operator serves selected namespaces only; use the namespaced Kind", i, kind)
	}
	return nil
}

// Path returns the path of the URL of an object.
func Path(o Object) string {
	if o.GetNamespace() == "" {
		return "/events/" + o.GetName()
	}
	return "/events/" + o.GetNamespace() + "/" + o.GetName()
}

// source is the EventSource of an object.
type source struct {
	*eventreceiver.Endpoint

	stores []v1alpha1.EventStoreRef
}

// Receive implements provider.EventSource.
func (s *source) Receive(ctx context.Context) (messages []provider.Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, receiveFor)
	defer cancel()
	reports := s.Endpoint.Receive(ctx, batch)
	if len(reports) == 0 && ctx.Err() == nil {
		return nil, provider.NewError(provider.Unavailable, "the receiver is closed; retrying")
	}
	for _, r := range reports {
		m := provider.Message{Receipt: r.Receipt, Sent: r.At, Events: s.events(r.Keys)}
		if r.Malformed {
			m.Malformed = "the body of a signed request has another form"
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// events returns an event for each key and each service of the stores.
func (s *source) events(keys []string) (events []provider.Event) {
	var services []string
	for _, store := range s.stores {
		if service := strings.TrimPrefix(store.Kind, "Cluster"); !slices.Contains(services, service) {
			services = append(services, service)
		}
	}
	for _, service := range services {
		for _, key := range keys {
			events = append(events, provider.Event{Kind: service, Names: []string{key}, Stores: s.stores})
		}
	}
	return events
}

// Extend implements provider.EventSource. A request waits without it.
func (*source) Extend(context.Context, []provider.Message) error { return nil }

// Ack implements provider.EventSource.
func (s *source) Ack(_ context.Context, messages []provider.Message) error {
	for _, m := range messages {
		s.Done(m.Receipt, m.Matched)
	}
	return nil
}
