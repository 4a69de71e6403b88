package emulator_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

// TestNotifications makes each change with a call, and receives its notification.
func TestNotifications(t *testing.T) {
	srv, conn := dial(t)
	changes := srv.AddSubscription("changes")
	ctx, api, sub := as(t, srv), pb.NewSecretManagerServiceClient(conn), pubsubpb.NewSubscriberClient(conn)
	const name, version = parent + "/secrets/db", parent + "/secrets/db/versions/1"
	cases := []struct {
		eventType, version string
		call               func() error
	}{
		{"SECRET_CREATE", "", func() error {
			_, err := api.CreateSecret(ctx, &pb.CreateSecretRequest{Parent: parent, SecretId: "db", Secret: automatic()})
			return err
		}},
		{"SECRET_VERSION_ADD", "1", func() error {
			_, err := api.AddSecretVersion(ctx, &pb.AddSecretVersionRequest{Parent: name, Payload: &pb.SecretPayload{Data: []byte("hunter2")}})
			return err
		}},
		{"SECRET_UPDATE", "", func() error {
			in := &pb.Secret{Name: name, Labels: map[string]string{"team": "shop"}}
			_, err := api.UpdateSecret(ctx, &pb.UpdateSecretRequest{Secret: in, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}}})
			return err
		}},
		{"SECRET_VERSION_DISABLE", "1", func() error {
			_, err := api.DisableSecretVersion(ctx, &pb.DisableSecretVersionRequest{Name: version})
			return err
		}},
		{"SECRET_VERSION_ENABLE", "1", func() error {
			_, err := api.EnableSecretVersion(ctx, &pb.EnableSecretVersionRequest{Name: version})
			return err
		}},
		{"SECRET_VERSION_DESTROY", "1", func() error {
			_, err := api.DestroySecretVersion(ctx, &pb.DestroySecretVersionRequest{Name: version})
			return err
		}},
		{"SECRET_DELETE", "", func() error {
			_, err := api.DeleteSecret(ctx, &pb.DeleteSecretRequest{Name: name})
			return err
		}},
	}
	for _, tc := range cases {
		if err := tc.call(); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"eventType": tc.eventType, "dataFormat": "JSON_API_V1", "secretId": "projects/" + emulator.DefaultProjectNumber + "/secrets/db"}
		if tc.version != "" {
			want["versionId"] = want["secretId"] + "/versions/" + tc.version
		}
		m := pull(ctx, t, sub, changes)
		got := m.GetMessage().GetAttributes()
		delete(got, "timestamp")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: attributes: -want, +got:\n%s", tc.eventType, diff)
		}
		if _, err := sub.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: changes.Name, AckIds: []string{m.GetAckId()}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(0, changes.Left()); diff != "" {
		t.Errorf("messages left: -want, +got:\n%s", diff)
	}
}

// pull waits for one message.
func pull(ctx context.Context, t *testing.T, sub pubsubpb.SubscriberClient, of *emulator.Subscription) *pubsubpb.ReceivedMessage {
	t.Helper()
	out, err := sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: of.Name, MaxMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	return out.GetReceivedMessages()[0]
}

// TestDeadline receives a message again when its deadline is over.
func TestDeadline(t *testing.T) {
	srv, conn := dial(t)
	changes := srv.AddSubscription("changes")
	ctx, sub := as(t, srv), pubsubpb.NewSubscriberClient(conn)
	changes.Publish(nil, map[string]string{"a": "b"})
	first := pull(ctx, t, sub, changes)
	start := time.Now()
	set := &pubsubpb.ModifyAckDeadlineRequest{Subscription: changes.Name, AckIds: []string{first.GetAckId()}, AckDeadlineSeconds: 1}
	if _, err := sub.ModifyAckDeadline(ctx, set); err != nil {
		t.Fatal(err)
	}
	again := pull(ctx, t, sub, changes)
	if took := time.Since(start); took < time.Second || took > 9*time.Second || again.GetAckId() == first.GetAckId() || again.GetMessage().GetMessageId() != first.GetMessage().GetMessageId() {
		t.Errorf("delivered again after %s as %v, first as %v", took, again, first)
	}
	if _, err := sub.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: changes.Name, AckIds: []string{first.GetAckId()}}); err != nil || changes.Left() != 1 {
		t.Errorf("the receipt of an earlier delivery: %v, %d messages left", err, changes.Left())
	}
}

func TestSubscriptionErrors(t *testing.T) {
	srv, conn := dial(t)
	changes := srv.AddSubscription("changes")
	if srv.AddSubscription("changes") != changes {
		t.Error("a second subscription of the same name")
	}
	ctx, sub := as(t, srv), pubsubpb.NewSubscriberClient(conn)
	_, err := sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: parent + "/subscriptions/other", MaxMessages: 1})
	is(t, "another subscription", err, codes.NotFound, "Resource not found (resource=other)")
	_, err = sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: "projects/nowhere/subscriptions/changes", MaxMessages: 1})
	is(t, "another project", err, codes.NotFound, "Requested project not found")
	_, err = sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: "changes", MaxMessages: 1})
	is(t, "an ID", err, codes.InvalidArgument, "Invalid [subscriptions] name")
	_, err = sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: changes.Name})
	is(t, "no messages", err, codes.InvalidArgument, "max_messages")
	_, err = sub.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: changes.Name})
	is(t, "no receipts", err, codes.InvalidArgument, "No ack ids")
	_, err = sub.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: changes.Name, AckIds: []string{"a"}, AckDeadlineSeconds: 601})
	is(t, "a long deadline", err, codes.InvalidArgument, "ack deadline")
	_, err = sub.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: changes.Name, MaxMessages: 1})
	is(t, "no login", err, codes.Unauthenticated, "")
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = sub.Pull(short, &pubsubpb.PullRequest{Subscription: changes.Name, MaxMessages: 1})
	is(t, "nothing to receive", err, codes.DeadlineExceeded, "")
}
