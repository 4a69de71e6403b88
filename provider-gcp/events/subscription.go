// Package events receives the messages about changed secrets that Secret Manager sends to a topic of Pub/Sub, for the event source
// Kinds GCPEventSource and ClusterGCPEventSource.
package events

import (
	"context"
	"crypto/x509"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/gcpconfig"
)

const (
	// wait is how long one call waits for messages. It is less than the timeout of a request.
	wait = 10 * time.Second
	// most is the maximum number of messages of one call.
	most = 10
)

// A Provider creates event sources. Its zero value is ready for use.
type Provider struct {
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
}

// Kinds returns the event source Kinds that the Provider serves.
func (p Provider) Kinds() []provider.Kind {
	return []provider.Kind{
		provider.EventSourceKindOf(p.Connect),
		provider.ClusterEventSourceKindOf(p.ConnectCluster),
	}
}

// Connect returns the subscription of an event source. It does not call Google.
func (p Provider) Connect(ctx context.Context, s *v1alpha1.GCPEventSource, creds provider.Credentials) (provider.EventSource, error) {
	return p.connect(ctx, s.GCP(), creds)
}

// ConnectCluster returns the subscription of a cluster event source. It does not call Google.
func (p Provider) ConnectCluster(ctx context.Context, s *v1alpha1.ClusterGCPEventSource, creds provider.Credentials) (provider.EventSource, error) {
	return p.connect(ctx, s.GCP(), creds)
}

func (p Provider) connect(ctx context.Context, spec *v1alpha1.GCPEventSourceSpec, creds provider.Credentials) (provider.EventSource, error) {
	c, err := gcpconfig.Load(ctx, gcpconfig.PubSub, spec.Connection(), creds, p.RootCAs)
	if err != nil {
		return nil, err
	}
	name := spec.PubSub.Subscription
	if !strings.HasPrefix(name, "projects/") {
		name = "projects/" + spec.ProjectID + "/subscriptions/" + name
	}
	s := &Subscription{api: pb.NewSubscriberClient(c.Conn), config: c, name: name, wait: wait}
	s.most.Store(most)
	return s, nil
}

// A Subscription is a pull subscription of Pub/Sub.
type Subscription struct {
	api    pb.SubscriberClient
	config *gcpconfig.Config
	name   string
	wait   time.Duration
	// most is the maximum number of messages of one call: 1 after an answer that was too large.
	most atomic.Int32
}

var (
	_ provider.EventSource = &Subscription{}
	_ provider.Checker     = &Subscription{}
)

// Close releases connections.
func (s *Subscription) Close() error { return s.config.Close() }

// Check reads the settings of the subscription. It also passes if only the permission for that call is missing, because then the
// login works: the role for receiving does not include it.
func (s *Subscription) Check(ctx context.Context) error {
	_, err := gcpconfig.Call(ctx, s.config, s.api.GetSubscription, &pb.GetSubscriptionRequest{Subscription: s.name}, s.params())
	if gcpconfig.IsPermissionMissing(err) {
		return nil
	}
	return s.explain(err, "spec.pubSub.subscription")
}

// Receive implements provider.EventSource. It sets the deadline of the messages to provider.Hold, because the deadline of the
// subscription may be shorter: the default is ten seconds, and a subscriber is not allowed to read it.
func (s *Subscription) Receive(ctx context.Context) ([]provider.Message, error) {
	out, err := s.pull(ctx)
	if gcpconfig.IsTooLarge(err) && s.most.Swap(1) > 1 { // Pub/Sub has delivered the messages, and does so again later.
		out, err = s.pull(ctx)
	}
	if err != nil {
		return nil, s.explain(err, "receiving messages")
	}
	var messages []provider.Message
	for _, m := range out.GetReceivedMessages() {
		message := parse(m.GetMessage().GetAttributes())
		message.Receipt = m.GetAckId()
		if at := m.GetMessage().GetPublishTime(); at.IsValid() {
			message.Sent = at.AsTime()
		}
		messages = append(messages, message)
	}
	if len(messages) == 0 {
		return nil, nil
	}
	if err := s.extend(ctx, messages); err != nil && !gcpconfig.IsExpired(err) { // Messages whose receipts have expired come again.
		return nil, s.explain(err, "keeping messages")
	}
	return messages, nil
}

func (s *Subscription) pull(ctx context.Context) (*pb.PullResponse, error) {
	return gcpconfig.Call(ctx, s.config, s.pullOnce, &pb.PullRequest{Subscription: s.name, MaxMessages: s.most.Load()}, s.params())
}

// pullOnce makes one call. Pub/Sub waits for messages until the deadline of the call, so an exceeded deadline means that there are
// none, if the server is connected.
func (s *Subscription) pullOnce(ctx context.Context, in *pb.PullRequest, opts ...grpc.CallOption) (*pb.PullResponse, error) {
	start := time.Now()
	waiting, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	out, err := s.api.Pull(waiting, in, opts...)
	waited := ctx.Err() == nil && time.Since(start) > s.wait/2
	if status.Code(err) == codes.DeadlineExceeded && waited && s.config.Conn.GetState() == connectivity.Ready {
		return &pb.PullResponse{}, nil
	}
	return out, err
}

// Extend implements provider.EventSource.
func (s *Subscription) Extend(ctx context.Context, messages []provider.Message) error {
	return s.explain(s.extend(ctx, messages), "keeping messages")
}

func (s *Subscription) extend(ctx context.Context, messages []provider.Message) error {
	in := &pb.ModifyAckDeadlineRequest{Subscription: s.name, AckIds: receipts(messages), AckDeadlineSeconds: int32(provider.Hold / time.Second)}
	_, err := gcpconfig.Call(ctx, s.config, s.api.ModifyAckDeadline, in, s.params())
	return err
}

// Ack implements provider.EventSource.
func (s *Subscription) Ack(ctx context.Context, messages []provider.Message) error {
	in := &pb.AcknowledgeRequest{Subscription: s.name, AckIds: receipts(messages)}
	_, err := gcpconfig.Call(ctx, s.config, s.api.Acknowledge, in, s.params())
	return s.explain(err, "removing messages")
}

func receipts(messages []provider.Message) (all []string) {
	for _, m := range messages {
		all = append(all, m.Receipt)
	}
	return all
}

// params returns the resource of a request in the format of Google's own clients.
func (s *Subscription) params() string { return "subscription=" + url.QueryEscape(s.name) }

// meanings are the errors of Pub/Sub, as listed at https://cloud.google.com/pubsub/docs/reference/error-codes.
var meanings = gcpconfig.Meanings{
	"SERVICE_DISABLED":                {Class: provider.Invalid, Text: "spec.projectID: the Pub/Sub API is not enabled in the project; enable pubsub.googleapis.com"},
	"API_NOT_ACTIVATED":               {Class: provider.Invalid, Text: "spec.projectID: the Pub/Sub API is not enabled in the project; enable pubsub.googleapis.com"},
	"ACCESS_TOKEN_SCOPE_INSUFFICIENT": {Class: provider.Denied, Text: "the access token is not for Pub/Sub"},
	gcpconfig.Elsewhere:               {Class: provider.Invalid, Text: "the project does not exist, or the caller has no access to it; correct spec.projectID"},
	codes.NotFound.String():           {Class: provider.Invalid, Text: "the subscription does not exist; correct spec.pubSub.subscription and spec.projectID"},
	codes.PermissionDenied.String():   {Class: provider.Denied, Text: "access denied; grant the caller roles/pubsub.subscriber on the subscription"},
	codes.FailedPrecondition.String(): {Class: provider.Invalid, Text: "Google refuses the call for the subscription; use one that is not detached, with pull delivery"},
	codes.Unimplemented.String():      {Class: provider.Unavailable, Text: "the response is not from Pub/Sub; check spec.endpoint"},
}

// missingResource extracts the name from a NOT_FOUND of Pub/Sub, whose text is the same for subscriptions and topics.
var missingResource = regexp.MustCompile(`^Resource not found \(resource=(?:projects/[^/]+/topics/)?([A-Za-z][\w.~+%-]{2,254})\)\.$`)

// explain turns the error of a call into a provider.Error; nil into nil.
func (s *Subscription) explain(err error, what string) error {
	if err == nil {
		return nil
	}
	if m := missingResource.FindStringSubmatch(status.Convert(err).Message()); m != nil && status.Code(err) == codes.NotFound && !strings.HasSuffix(s.name, "/"+m[1]) {
		return provider.NewError(provider.Invalid, "%s: the topic %q of the subscription does not exist; create it, or correct spec.pubSub.subscription", what, m[1])
	}
	return meanings.Explain(err, what)
}
