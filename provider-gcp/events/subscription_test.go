package events

import (
	"net"
	"testing"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

// start starts an emulator with a secret.
func start(t *testing.T) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(emulator.WithProject("other-project", "42"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	srv.Put("db", []byte("x"))
	return srv
}

// connect returns an event source for a subscription of an emulator.
func connect(t *testing.T, srv *emulator.Server, project, subscription string) *Subscription {
	t.Helper()
	one := int32(1)
	o := &v1alpha1.GCPEventSource{}
	o.Spec.ProjectID, o.Spec.Endpoint, o.Spec.PubSub.Subscription = project, srv.URL(), subscription
	o.Spec.RetrySettings = &common.RetrySettings{MaxRetries: &one, RetryInterval: "1ms"}
	o.Spec.Auth = &v1alpha1.GCPAuth{SecretRef: &v1alpha1.GCPSecretRef{SecretAccessKeySecretRef: common.SecretKeySelector{Name: "gcp", Key: "key.json"}}}
	s, err := Provider{}.Connect(t.Context(), o, fake.Credentials{"key.json": string(srv.Key("events@test-project.iam.gserviceaccount.com"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close(s) }) // The test does not depend on a clean end.
	return s.(*Subscription)
}

func TestConformance(t *testing.T) {
	srv := start(t)
	changes := srv.AddSubscription("changes")
	conformance.RunQueue(t, conformance.QueueHarness{
		Kind: "GCPEventSource", Service: emulator.Name,
		Connect: func(t *testing.T) provider.EventSource { return connect(t, srv, emulator.DefaultProject, "changes") },
		Change: func(*testing.T) provider.Event {
			version := srv.Put("db", []byte("x"))
			return addedTo("projects/"+emulator.DefaultProjectNumber+"/secrets/db", version)
		},
		Send:      func(_ *testing.T, body string) { changes.Publish([]byte(body), nil) },
		Redeliver: func(*testing.T) { changes.Redeliver() },
		Left:      func(*testing.T) int { return changes.Left() },
	})
}

// TestReceive receives nothing until a change, from a subscription with a full name.
func TestReceive(t *testing.T) {
	srv := start(t)
	srv.AddSubscription("changes")
	s := connect(t, srv, "other-project", "projects/test-project/subscriptions/changes")
	s.wait = 100 * time.Millisecond
	for range 2 {
		if messages, err := s.Receive(t.Context()); err != nil || len(messages) > 0 {
			t.Errorf("an empty subscription: %d messages, %v", len(messages), err)
		}
	}
	if diff := cmp.Diff(0, srv.Count("ModifyAckDeadline")); diff != "" {
		t.Errorf("deadlines of no messages: -want, +got:\n%s", diff)
	}
	s.wait = time.Minute
	srv.Put("db", []byte("y"))
	if messages, err := s.Receive(t.Context()); err != nil || len(messages) != 1 {
		t.Errorf("a change: %d messages, %v", len(messages), err)
	}
	if diff := cmp.Diff(1, srv.Count("ModifyAckDeadline")); diff != "" {
		t.Errorf("deadlines of received messages: -want, +got:\n%s", diff)
	}
	srv.Inject(emulator.Fault{Call: "Pull", Code: codes.DeadlineExceeded})
	if _, err := s.Receive(t.Context()); err == nil || provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("a server that does not wait: %v", err)
	}
}

// TestSilent waits for a server that accepts connections and sends nothing, which is not an empty subscription.
func TestSilent(t *testing.T) {
	srv := start(t)
	s := connect(t, srv, emulator.DefaultProject, "changes")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // The test does not depend on a clean end.
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	good := s.config.Conn
	t.Cleanup(func() { _ = good.Close() })
	s.config.Conn, s.api, s.wait = conn, pb.NewSubscriberClient(conn), 100*time.Millisecond
	if messages, err := s.Receive(t.Context()); err == nil || provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("received %d messages, %v", len(messages), err)
	}
}

func TestErrors(t *testing.T) {
	const name = "changes"
	fault := func(code codes.Code, reason string) emulator.Fault {
		return emulator.Fault{Call: "Pull", Code: code, Message: "hunter2", Reason: reason}
	}
	cases := map[string]struct {
		reason                string
		project, subscription string
		fault                 emulator.Fault
		class                 provider.Class
		text                  string
	}{
		"Topic":         {"The message names a topic that does not exist.", emulator.DefaultProject, name, emulator.Fault{Call: "Pull", Code: codes.NotFound, Message: "Resource not found (resource=secret-changes)."}, provider.Invalid, `the topic "secret-changes" of the subscription does not exist; create it, or correct spec.pubSub.subscription`},
		"Gone":          {"The subscription does not exist.", emulator.DefaultProject, "other", emulator.Fault{Call: "none"}, provider.Invalid, "the subscription does not exist; correct spec.pubSub.subscription and spec.projectID"},
		"GoneProject":   {"A subscription can be named as a project or a service.", emulator.DefaultProject, "my-project.service", emulator.Fault{Call: "none"}, provider.Invalid, "the subscription does not exist; correct spec.pubSub.subscription and spec.projectID"},
		"OtherProject":  {"A project has subscriptions of its own.", "other-project", name, emulator.Fault{Call: "none"}, provider.Invalid, "the subscription does not exist; correct spec.pubSub.subscription and spec.projectID"},
		"NoProject":     {"The project does not exist.", "nowhere", name, emulator.Fault{Call: "none"}, provider.Invalid, "the project does not exist, or the caller has no access to it; correct spec.projectID"},
		"Denied":        {"The message names the role.", emulator.DefaultProject, name, fault(codes.PermissionDenied, ""), provider.Denied, "access denied; grant the caller roles/pubsub.subscriber on the subscription"},
		"NotEnabled":    {"The message names the API.", emulator.DefaultProject, name, fault(codes.PermissionDenied, "SERVICE_DISABLED"), provider.Invalid, "spec.projectID: the Pub/Sub API is not enabled in the project; enable pubsub.googleapis.com"},
		"Suspended":     {"Other reasons are those of every service.", emulator.DefaultProject, name, fault(codes.PermissionDenied, "CONSUMER_SUSPENDED"), provider.Invalid, "spec.projectID: the project is suspended"},
		"Throttled":     {"Throttling is not a fault of the spec.", emulator.DefaultProject, name, fault(codes.ResourceExhausted, ""), provider.Throttled, "Google throttles the calls; retrying with back-off"},
		"Down":          {"A service that is not available is not a fault of the spec.", emulator.DefaultProject, name, fault(codes.Unavailable, ""), provider.Unavailable, "Google is not available"},
		"Push":          {"Only a pull subscription can be received from.", emulator.DefaultProject, name, fault(codes.FailedPrecondition, ""), provider.Invalid, "Google refuses the call for the subscription; use one that is not detached, with pull delivery"},
		"Unimplemented": {"The server is not Pub/Sub.", emulator.DefaultProject, name, fault(codes.Unimplemented, ""), provider.Unavailable, "the response is not from Pub/Sub; check spec.endpoint"},
		"Unknown":       {"An unknown code proves nothing.", emulator.DefaultProject, name, fault(codes.Unknown, ""), provider.Unavailable, "Google returned the error Unknown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.AddSubscription("changes")
			srv.Inject(tc.fault)
			_, err := connect(t, srv, tc.project, tc.subscription).Receive(t.Context())
			got := provider.Safe(err)
			if diff := cmp.Diff([]string{string(tc.class), "receiving messages: " + tc.text}, []string{string(got.Class), got.Message}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExpired uses receipts that have expired, in a subscription with exactly-once delivery.
func TestExpired(t *testing.T) {
	const text = "Some acknowledgement ids in the request were invalid. This could be because the acknowledgement ids have expired."
	srv := start(t)
	changes := srv.AddSubscription("changes")
	changes.Publish(nil, nil)
	s := connect(t, srv, emulator.DefaultProject, "changes")
	srv.Inject(emulator.Fault{Call: "ModifyAckDeadline", Code: codes.InvalidArgument, Message: text, Reason: "EXACTLY_ONCE_ACKID_FAILURE"})
	srv.Inject(emulator.Fault{Call: "Acknowledge", Code: codes.InvalidArgument, Message: text, Reason: "EXACTLY_ONCE_ACKID_FAILURE"})
	messages, err := s.Receive(t.Context())
	if err != nil || len(messages) != 1 {
		t.Fatalf("received %d messages, %v; want the message, although its receipt has expired already", len(messages), err)
	}
	const expired = "the receipts of messages have expired; the messages come again"
	got := []*provider.Error{provider.Safe(s.Extend(t.Context(), messages)), provider.Safe(s.Ack(t.Context(), messages))}
	want := []*provider.Error{provider.NewError(provider.Unavailable, "keeping messages: %s", expired), provider.NewError(provider.Unavailable, "removing messages: %s", expired)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors of Extend and Ack: -want, +got:\n%s", diff)
	}
}

// TestLarge receives messages that are too large for one answer together.
func TestLarge(t *testing.T) {
	srv := start(t)
	changes := srv.AddSubscription("changes")
	for range 4 {
		changes.Publish(make([]byte, 9<<20), nil)
	}
	s := connect(t, srv, emulator.DefaultProject, "changes")
	go func() {
		_ = srv.Wait(t.Context(), 2, "Pull") // Without a second call the test fails.
		changes.Redeliver()
	}()
	for range 4 {
		messages, err := s.Receive(t.Context())
		if err != nil || len(messages) == 0 {
			t.Fatalf("received %d messages, %v", len(messages), err)
		}
		if err := s.Ack(t.Context(), messages); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(0, changes.Left()); diff != "" {
		t.Errorf("messages left: -want, +got:\n%s", diff)
	}
}

// TestCheck reads the settings of the subscription.
func TestCheck(t *testing.T) {
	srv := start(t)
	srv.AddSubscription("changes")
	if err := connect(t, srv, emulator.DefaultProject, "changes").Check(t.Context()); err != nil {
		t.Errorf("a subscription that exists: %v", err)
	}
	if err := connect(t, srv, emulator.DefaultProject, "other").Check(t.Context()); provider.ClassOf(err) != provider.Invalid {
		t.Errorf("a subscription that does not exist: %v", err)
	}
	srv.Inject(emulator.Fault{Call: "GetSubscription", Code: codes.PermissionDenied, Message: "User not authorized to perform this action."})
	if err := connect(t, srv, emulator.DefaultProject, "changes").Check(t.Context()); err != nil {
		t.Errorf("a subscription whose settings the caller is not allowed to read: %v", err)
	}
	srv.Inject(emulator.Fault{Call: emulator.MethodToken, Code: codes.PermissionDenied})
	if err := connect(t, srv, emulator.DefaultProject, "changes").Check(t.Context()); provider.ClassOf(err) != provider.Denied {
		t.Errorf("a login that fails: %v", err)
	}
}
