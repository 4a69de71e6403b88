package events

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// connect returns the queue "changes" of an emulator.
func connect(t *testing.T, srv *emulator.Server, name string) *Queue {
	t.Helper()
	o := &v1alpha1.AWSEventSource{}
	o.Spec.SQS.QueueURL = strings.Replace(srv.AddQueue("changes").URL, "changes", name, 1)
	q, err := awstest.Connect(t, o, Connect, srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	return q.(*Queue)
}

func TestConformance(t *testing.T) {
	srv := awstest.Start(t)
	queue := srv.AddQueue("changes")
	conformance.RunQueue(t, conformance.QueueHarness{
		Kind: "AWSEventSource", Service: emulator.Name,
		Connect: func(t *testing.T) provider.EventSource { return connect(t, srv, "changes") },
		Change: func(*testing.T) provider.Event {
			return provider.Event{Kind: secretKind, Names: []string{"shop/db"}, Version: srv.Put("shop/db", []byte("x"))}
		},
		Send:      func(_ *testing.T, body string) { queue.Send(body) },
		Redeliver: func(*testing.T) { queue.Redeliver() },
		Left:      func(*testing.T) int { return queue.Left() },
	})
}

// TestPoison receives a message until the queue gives it up.
func TestPoison(t *testing.T) {
	srv := awstest.Start(t)
	queue := srv.AddQueue("changes")
	queue.MaxReceives, queue.Undelivered = 2, &emulator.Queue{}
	queue.Send("poison")
	q := connect(t, srv, "changes")
	for range 2 {
		if m, err := q.Receive(t.Context()); err != nil || len(m) != 1 {
			t.Fatalf("received %d messages, %v", len(m), err)
		}
		queue.Redeliver()
	}
	srv.Put("shop/db", []byte("x"))
	if m, err := q.Receive(t.Context()); err != nil || len(m) != 1 || m[0].Malformed != "" {
		t.Errorf("received %+v, %v; want the event after the poison", m, err)
	}
	if diff := cmp.Diff(1, queue.Undelivered.Left()); diff != "" {
		t.Errorf("undelivered messages: -want, +got:\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	const name = "changes"
	cases := map[string]struct {
		reason string
		queue  string
		fault  emulator.Fault
		class  provider.Class
		text   string
	}{
		"Gone":        {"The queue does not exist.", "other", emulator.Fault{Times: 1, Call: "none"}, provider.Invalid, "receiving messages: the queue does not exist; correct spec.sqs.queueURL and spec.region"},
		"Denied":      {"The message names the permission.", name, emulator.Fault{Code: "AccessDenied"}, provider.Denied, "receiving messages: access denied; allow sqs:ReceiveMessage in a policy"},
		"Throttled":   {"Throttling is not a fault of the spec.", name, emulator.Fault{Code: "RequestThrottled"}, provider.Throttled, "receiving messages: AWS throttles the calls; retrying with back-off"},
		"Key":         {"The queue is encrypted with a key.", name, emulator.Fault{Code: "KmsAccessDenied"}, provider.Denied, "receiving messages: KMS cannot decrypt it; check that its KMS key is enabled and that kms:Decrypt is allowed"},
		"KeyDisabled": {"The key is disabled.", name, emulator.Fault{Code: "KmsDisabled"}, provider.Denied, "receiving messages: KMS cannot decrypt it; check that its KMS key is enabled and that kms:Decrypt is allowed"},
		"KeyGone":     {"The key does not exist.", name, emulator.Fault{Code: "KmsNotFound"}, provider.Denied, "receiving messages: KMS cannot decrypt it; check that its KMS key is enabled and that kms:Decrypt is allowed"},
		"KeyState":    {"The key is to be deleted.", name, emulator.Fault{Code: "KmsInvalidState"}, provider.Denied, "receiving messages: KMS cannot decrypt it; check that its KMS key is enabled and that kms:Decrypt is allowed"},
		"KeyUsage":    {"The key is for signatures.", name, emulator.Fault{Code: "KmsInvalidKeyUsage"}, provider.Denied, "receiving messages: KMS cannot decrypt it; check that its KMS key is enabled and that kms:Decrypt is allowed"},
		"NoKMS":       {"The account has no KMS.", name, emulator.Fault{Code: "KmsOptInRequired"}, provider.Denied, "receiving messages: the AWS account is not subscribed to KMS"},
		"KeyBusy":     {"KMS throttles on its own.", name, emulator.Fault{Code: "KmsThrottled"}, provider.Throttled, "receiving messages: KMS throttles the calls; retrying with back-off"},
		"Other":       {"An unknown code proves nothing.", name, emulator.Fault{Code: "Weird"}, provider.Unavailable, "receiving messages: AWS returned the error Weird"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			srv.Inject(tc.fault)
			_, err := connect(t, srv, tc.queue).Receive(t.Context())
			got := provider.Safe(err)
			if diff := cmp.Diff([]string{string(tc.class), tc.text}, []string{string(got.Class), got.Message}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExpired uses receipts that have expired.
func TestExpired(t *testing.T) {
	for name, fault := range map[string]emulator.Fault{
		"Expired": {Code: "InvalidParameterValueException", Message: "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."},
		"Unknown": {Code: "ReceiptHandleIsInvalid", Message: "The input receipt handle is invalid."},
	} {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			srv.Inject(fault)
			q, messages := connect(t, srv, "changes"), []provider.Message{{Receipt: "x"}}
			const expired = "the receipts of messages have expired; the messages come again"
			got := []*provider.Error{provider.Safe(q.Extend(t.Context(), messages)), provider.Safe(q.Ack(t.Context(), messages))}
			want := []*provider.Error{provider.NewError(provider.Unavailable, "keeping messages: %s", expired), provider.NewError(provider.Unavailable, "removing messages: %s", expired)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("errors of Extend and Ack: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestFailedEntries receives answers to batches in which some messages have failed.
func TestFailedEntries(t *testing.T) {
	cases := map[string]struct {
		reason  string
		code    string
		status  int
		message string
		class   provider.Class // empty: no error
		text    string
	}{
		"Expired":   {"The receipt of a message that comes again anyway needs no retry.", "ReceiptHandleIsInvalid", 400, "", "", ""},
		"Value":     {"An expired receipt also has this code.", "InvalidParameterValue", 400, "Value x for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", "", ""},
		"Parameter": {"Another wrong parameter is no success.", "InvalidParameterValue", 400, "Value 0 for parameter VisibilityTimeout is invalid.", provider.Invalid, "removing messages: 1 of 2 failed: AWS rejects the request as invalid; check the spec"},
		"InFlight":  {"A message that is not held any more comes again.", "MessageNotInflight", 400, "", "", ""},
		"Internal":  {"A fault of SQS is no success.", "InternalError", 500, "", provider.Unavailable, "removing messages: 1 of 2 failed: AWS returned the error InternalError"},
		"Throttled": {"A throttled message is no success.", "RequestThrottled", 500, "", provider.Throttled, "removing messages: 1 of 2 failed: AWS throttles the calls; retrying with back-off"},
		"Denied":    {"Another fault of the caller is no success.", "AccessDenied", 400, "", provider.Denied, "removing messages: 1 of 2 failed: access denied; allow sqs:DeleteMessage in a policy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			queue := srv.AddQueue("changes")
			queue.Send("one")
			queue.Send("two")
			q := connect(t, srv, "changes")
			messages, err := q.Receive(t.Context())
			if err != nil || len(messages) != 2 {
				t.Fatalf("received %d messages, %v", len(messages), err)
			}
			srv.Inject(emulator.Fault{Entry: true, Key: messages[0].Receipt, Code: tc.code, Status: tc.status, Message: tc.message})
			if err := q.Extend(t.Context(), messages); (err == nil) != (tc.class == "") || err != nil && provider.ClassOf(err) != tc.class {
				t.Errorf("%s\nExtend(...): %v, want class %q", tc.reason, err, tc.class)
			}
			err = q.Ack(t.Context(), messages)
			got := []string{"", ""}
			if err != nil {
				got = []string{string(provider.ClassOf(err)), err.Error()}
			}
			if diff := cmp.Diff([]string{string(tc.class), tc.text}, got); diff != "" {
				t.Errorf("%s\nAck(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(1, queue.Left()); diff != "" {
				t.Errorf("%s\nmessages that are left: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCheck reads an attribute of the queue.
func TestCheck(t *testing.T) {
	srv := awstest.Start(t)
	if err := connect(t, srv, "changes").Check(t.Context()); err != nil {
		t.Errorf("a queue that exists: %v", err)
	}
	if err := connect(t, srv, "other").Check(t.Context()); provider.ClassOf(err) != provider.Invalid {
		t.Errorf("a queue that does not exist: %v", err)
	}
	srv.Inject(emulator.Fault{Code: "AccessDenied"})
	if err := connect(t, srv, "changes").Check(t.Context()); err != nil {
		t.Errorf("a queue whose attributes the identity is not allowed to read: %v", err)
	}
}
