package provider

import (
	"context"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// An EventSourceObject is an Object of an event source Kind: it embeds EventSourceSpec and EventSourceSubresource.
type EventSourceObject interface {
	Object

	// EventSourceSpec returns the embedded spec, which the caller can change.
	EventSourceSpec() *v1alpha1.EventSourceSpec
	// Received returns the part of the status about events, which the caller can change.
	Received() *v1alpha1.ReceivedEvents
}

// A ClusterEventSourceObject is an EventSourceObject of a cluster Kind.
type ClusterEventSourceObject interface {
	EventSourceObject
	ClusterObject
}

// An EventSourceConnector creates the EventSource of an object of one event source Kind. It has the same duties as a
// Connector.
type EventSourceConnector[S EventSourceObject] func(ctx context.Context, s S, creds Credentials) (EventSource, error)

// An EventSource receives messages about changed secrets from a queue. It must be safe for concurrent use. A message carries no
// value and grants nothing: what it causes is a read, which is authorized like any other. So it does not matter who sent it.
type EventSource interface {
	// Receive waits for messages, at most about 20 seconds, and returns up to ten. It returns none if there are none. The
	// queue must not deliver a message again within Hold.
	Receive(ctx context.Context) ([]Message, error)

	// Extend keeps messages from being delivered again within Hold from now.
	Extend(ctx context.Context, messages []Message) error

	// Ack removes messages from the queue. A message that is not removed is delivered again.
	Ack(ctx context.Context, messages []Message) error
}

const (
	// maxReceived is the maximum number of messages that one call receives.
	maxReceived = 10
	// maxNames is the maximum number of names of one event. Services have up to six.
	maxNames = 16
)

// Hold is how long a queue does not deliver a message again, after Receive or Extend.
const Hold = time.Minute

// A Message is what a queue delivers.
type Message struct {
	// Receipt identifies the delivery for Extend and Ack.
	Receipt string
	// Sent is when the service sent the message; zero if that is not known.
	Sent time.Time
	// Events are the changes that the message reports.
	Events []Event
	// Matched is the number of secrets of Events, by their first name, that objects use. It is set for Ack only, which gets no Events.
	Matched int
	// Malformed is why the message is not known to report a change; empty if it does. It must not quote the message.
	Malformed string
}

// An Event says that a secret has changed.
type Event struct {
	// Kind is the namespaced store Kind that reads the secret, for example AWSSecretsManager.
	Kind string
	// Names are the names that the service has for the secret, for example its ARN and its name.
	Names []string
	// Place is where the secret is, for example a region; empty if that is not known.
	Place string
	// Version is the version of the value after the change, as Value has it; empty if that is not known.
	Version string
	// Stores are the only stores whose secret it can be, whose objects use the names as keys; empty if that is not known.
	Stores []v1alpha1.EventStoreRef
}

// EventSourceKindOf returns the namespaced event source Kind whose Go type is S, a pointer to a struct.
func EventSourceKindOf[S EventSourceObject](c EventSourceConnector[S]) Kind {
	k := kindOf(c)
	k.EventSource = true
	return k
}

// ClusterEventSourceKindOf returns the cluster-scoped event source Kind whose Go type is S.
func ClusterEventSourceKindOf[S ClusterEventSourceObject](c EventSourceConnector[S]) Kind {
	k := EventSourceKindOf(c)
	k.Cluster = true
	return k
}

// WithKeys returns the Kind of a store whose secrets event sources report. keys is as the method Keys. scope is as the method Scope.
func (k Kind) WithKeys(scope func(store Object) any, keys func(store Object, e Event) []string) Kind {
	k.scope, k.keys = scope, keys
	return k
}

// Scope returns a comparable value of the settings of a store by which its objects name secrets. Stores with equal values have the
// same Keys.
func (k Kind) Scope(store Object) any {
	if k.scope == nil {
		return nil
	}
	scope, err := guard("matching an event", func() (any, error) { return k.scope(store), nil })
	if err != nil {
		return nil
	}
	return scope
}

// Keys returns the keys by which objects that use a store can name the secret of an event, first the one that Find returns; none
// if the secret is not one of the store.
func (k Kind) Keys(store Object, e Event) (keys []string) {
	if len(e.Stores) > 0 {
		keys = slices.Clone(e.Names)
	}
	if k.keys == nil {
		return keys
	}
	more, err := guard("matching an event", func() ([]string, error) { return k.keys(store, e), nil })
	if err != nil {
		return keys
	}
	for _, key := range more {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// MayBeOf reports whether the secret of an event can be one of a store by its name.
func (e *Event) MayBeOf(k Kind, store string) bool {
	return len(e.Stores) == 0 || slices.Contains(e.Stores, v1alpha1.EventStoreRef{Kind: k.GoName(), Name: store})
}

// ServedIf returns the Kind, of whose objects this module serves only those for which serves returns true.
func (k Kind) ServedIf(serves func(Object) bool) Kind {
	k.serves = serves
	return k
}

// Serves reports whether this module serves an object of the Kind.
func (k Kind) Serves(o Object) bool { return k.serves == nil || k.serves(o) }

// WithAnswers returns the Kind with another text for the condition of an object that works.
func (k Kind) WithAnswers(text string) Kind {
	k.answers = text
	return k
}

// Answers returns the text for the condition of an object that works: what its Check proves. l is nil if the object was not
// connected, because each namespace has its own login.
func (k Kind) Answers(l *Link) string {
	switch {
	case l == nil:
		return "the spec is valid; each namespace has its own login, which is checked when it is used"
	case receivesNothing(l):
		return "the spec is valid"
	case k.answers != "":
		return k.answers
	case !l.Can(CapabilityCheck) && k.Generator:
		return "the spec is valid; nothing else is checked until values are generated"
	case !l.Can(CapabilityCheck):
		return "the spec is valid; this Kind has no check of its server"
	case k.EventSource:
		return "the queue answers and accepts the login"
	case k.Generator:
		return "the service answers and accepts the login"
	}
	return "the store answers and accepts the login"
}

// Receive waits for messages. Its result is also that of the next Check.
func Receive(ctx context.Context, l *Link) ([]Message, error) {
	s, err := as[EventSource](l, "receive")
	if err != nil {
		return nil, err
	}
	messages, err := call(ctx, l, "Receive", "receiving", l.refused, s.Receive)
	if ctx.Err() == nil {
		l.received.Store(&received{err})
	}
	return limit(messages), err
}

// limit drops what a server has sent beyond what was asked for: each name is compared with each store. Dropped messages come again.
func limit(messages []Message) []Message {
	messages = messages[:min(len(messages), maxReceived)]
	for i := range messages {
		for j := range messages[i].Events {
			e := &messages[i].Events[j]
			e.Names = e.Names[:min(len(e.Names), maxNames)]
		}
	}
	return messages
}

// received is the result of the last Receive.
type received struct{ err error }

// lastReceived returns the error of the last Receive.
func lastReceived(l *Link) error {
	if r := l.received.Load(); r != nil {
		return r.err
	}
	return nil
}

// Extend keeps messages from being delivered again within Hold from now.
func Extend(ctx context.Context, l *Link, messages []Message) error {
	return onMessages(ctx, l, "Extend", messages, EventSource.Extend)
}

// Ack removes messages from the queue.
func Ack(ctx context.Context, l *Link, messages []Message) error {
	return onMessages(ctx, l, "Ack", messages, EventSource.Ack)
}

func onMessages(ctx context.Context, l *Link, name string, messages []Message, f func(EventSource, context.Context, []Message) error) error {
	s, err := as[EventSource](l, name)
	if err != nil {
		return err
	}
	_, err = call(ctx, l, name, "handling messages", l.refused, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(s, ctx, messages) })
	return err
}
