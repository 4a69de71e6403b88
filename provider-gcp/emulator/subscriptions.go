package emulator

import (
	"context"
	"crypto/rand"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

const (
	// ackDeadline is the default deadline of a new subscription.
	ackDeadline = 10 * time.Second
	// maxAckDeadline is the maximum of ModifyAckDeadline.
	maxAckDeadline = 600
	// pollInterval is how often a call that waits for messages checks for them.
	pollInterval = 5 * time.Millisecond
)

// A Subscription is a pull subscription: it delivers a message again when its deadline is over.
type Subscription struct {
	fake.Messages[*pubsubpb.PubsubMessage]
	// Name is the full name.
	Name string
}

// subscriptions are the subscriptions of an Emulator, by project and ID.
type subscriptions struct {
	mu     sync.Mutex
	byName map[name]*Subscription
}

func (s *subscriptions) all() []*Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byName))
}

// AddSubscription creates a subscription of DefaultProject, or returns the one with this ID. From now on it gets a notification of
// every change.
func (e *Emulator) AddSubscription(id string) *Subscription {
	e.subscriptions.mu.Lock()
	defer e.subscriptions.mu.Unlock()
	n := name{project: DefaultProject, id: id}
	if s := e.subscriptions.byName[n]; s != nil {
		return s
	}
	s := &Subscription{Name: "projects/" + n.project + "/subscriptions/" + id}
	if e.subscriptions.byName == nil {
		e.subscriptions.byName = map[name]*Subscription{}
	}
	e.subscriptions.byName[n] = s
	return s
}

// Publish adds a message.
func (s *Subscription) Publish(data []byte, attributes map[string]string) {
	s.Send(&pubsubpb.PubsubMessage{MessageId: rand.Text(), Data: data, Attributes: attributes, PublishTime: timestamppb.Now()})
}

// subscriber is the service that pulls messages.
type subscriber struct {
	pubsubpb.UnimplementedSubscriberServer

	emulator *Emulator
}

var subscriptionName = regexp.MustCompile(`^projects/([^/]+)/subscriptions/([A-Za-z][A-Za-z0-9._~+%-]{2,254})$`)

func (s *subscriber) find(in subscribed) (*Subscription, error) {
	m := subscriptionName.FindStringSubmatch(in.GetSubscription())
	if m == nil {
		return nil, invalid("Invalid [subscriptions] name: (name=%s)", in.GetSubscription())
	}
	project, err := s.emulator.project(m[1])
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "Requested project not found or user does not have access to it (project=%s).", m[1])
	}
	s.emulator.subscriptions.mu.Lock()
	defer s.emulator.subscriptions.mu.Unlock()
	if of := s.emulator.subscriptions.byName[name{project: project, id: m[2]}]; of != nil {
		return of, nil
	}
	return nil, status.Errorf(codes.NotFound, "Resource not found (resource=%s).", m[2])
}

// Pull waits for messages until the deadline of the call.
func (s *subscriber) Pull(ctx context.Context, in *pubsubpb.PullRequest) (*pubsubpb.PullResponse, error) {
	of, err := s.find(in)
	if err != nil {
		return nil, err
	}
	if in.GetMaxMessages() < 1 {
		return nil, invalid("You have passed an invalid argument to the service (argument=max_messages).")
	}
	for {
		var out pubsubpb.PullResponse
		for _, m := range of.Take(int(in.GetMaxMessages()), ackDeadline) {
			out.ReceivedMessages = append(out.ReceivedMessages, &pubsubpb.ReceivedMessage{AckId: m.Receipt, Message: m.Body})
		}
		if len(out.GetReceivedMessages()) > 0 {
			return &out, nil
		}
		if err := fake.Pause(ctx, pollInterval); err != nil {
			return nil, status.FromContextError(err).Err()
		}
	}
}

// change calls f for each receipt. It ignores those of earlier deliveries.
func (s *subscriber) change(in subscribed, receipts []string, f func(of *Subscription, receipt string)) (*emptypb.Empty, error) {
	of, err := s.find(in)
	if err != nil {
		return nil, err
	}
	if len(receipts) == 0 {
		return nil, invalid("No ack ids specified.")
	}
	for _, r := range receipts {
		f(of, r)
	}
	return &emptypb.Empty{}, nil
}

// Acknowledge removes messages.
func (s *subscriber) Acknowledge(_ context.Context, in *pubsubpb.AcknowledgeRequest) (*emptypb.Empty, error) {
	return s.change(in, in.GetAckIds(), func(of *Subscription, receipt string) { of.Remove(receipt) })
}

// ModifyAckDeadline sets the deadline of messages, from now.
func (s *subscriber) ModifyAckDeadline(_ context.Context, in *pubsubpb.ModifyAckDeadlineRequest) (*emptypb.Empty, error) {
	if in.GetAckDeadlineSeconds() < 0 || in.GetAckDeadlineSeconds() > maxAckDeadline {
		return nil, invalid("Invalid ack deadline given")
	}
	return s.change(in, in.GetAckIds(), func(of *Subscription, receipt string) {
		of.Hide(receipt, time.Duration(in.GetAckDeadlineSeconds())*time.Second)
	})
}

// GetSubscription returns the settings of a subscription.
func (s *subscriber) GetSubscription(_ context.Context, in *pubsubpb.GetSubscriptionRequest) (*pubsubpb.Subscription, error) {
	of, err := s.find(in)
	if err != nil {
		return nil, err
	}
	return &pubsubpb.Subscription{Name: of.Name, AckDeadlineSeconds: int32(ackDeadline / time.Second)}, nil
}
