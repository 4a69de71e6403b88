package emulator_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

const parent = "projects/" + emulator.DefaultProject

func start(t testing.TB, opts ...emulator.Option) (*emulator.Server, pb.SecretManagerServiceClient) {
	t.Helper()
	srv, conn := dial(t, opts...)
	return srv, pb.NewSecretManagerServiceClient(conn)
}

func dial(t testing.TB, opts ...emulator.Option) (*emulator.Server, *grpc.ClientConn) {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(strings.TrimPrefix(srv.URL(), "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv, conn
}

// as returns a context with a valid login and a deadline.
func as(t testing.TB, srv *emulator.Server) context.Context {
	t.Helper()
	token := rand.Text()
	srv.AddToken(token, "test", time.Now().Add(time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func automatic() *pb.Secret {
	return &pb.Secret{Replication: &pb.Replication{Replication: &pb.Replication_Automatic_{Automatic: &pb.Replication_Automatic{}}}}
}

// is reports an error with another code or text.
func is(t *testing.T, what string, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		t.Errorf("%s: %v, want %s: …%s…", what, err, code, text)
	}
}

// TestVersions moves a version through all states, and receives the notification of each change.
func TestVersions(t *testing.T) {
	srv, conn := dial(t)
	ctx, c := as(t, srv), pb.NewSecretManagerServiceClient(conn)
	changes := srv.AddSubscription("changes")
	const name, first = parent + "/secrets/db", parent + "/secrets/db/versions/1"
	const answer = "projects/" + emulator.DefaultProjectNumber + "/secrets/db"
	srv.Put("db", []byte("one"))
	srv.Put("db", []byte("two"))
	v, err := c.GetSecretVersion(ctx, &pb.GetSecretVersionRequest{Name: first})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.DisableSecretVersion(ctx, &pb.DisableSecretVersionRequest{Name: first, Etag: v.GetEtag()})
	is(t, "disable", err, codes.OK, "")
	_, err = c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: first})
	is(t, "disabled", err, codes.FailedPrecondition, "Secret Version ["+answer+"/versions/1] is in DISABLED state.")
	_, err = c.DestroySecretVersion(ctx, &pb.DestroySecretVersionRequest{Name: first, Etag: v.GetEtag()})
	is(t, "another etag", err, codes.FailedPrecondition, "etag")
	_, err = c.EnableSecretVersion(ctx, &pb.EnableSecretVersionRequest{Name: first})
	is(t, "enable", err, codes.OK, "")
	if v, err := c.DestroySecretVersion(ctx, &pb.DestroySecretVersionRequest{Name: first}); err != nil || v.GetState() != pb.SecretVersion_DESTROYED || v.GetDestroyTime() == nil {
		t.Errorf("DestroySecretVersion: %v, %v", v, err)
	}
	_, err = c.EnableSecretVersion(ctx, &pb.EnableSecretVersionRequest{Name: first})
	is(t, "destroyed for good", err, codes.FailedPrecondition, "DESTROYED")
	if all, err := c.ListSecretVersions(ctx, &pb.ListSecretVersionsRequest{Parent: name}); err != nil || len(all.GetVersions()) != 2 || all.GetVersions()[0].GetName() != answer+"/versions/2" {
		t.Errorf("ListSecretVersions: %v, %v", all, err)
	}
	out, err := pubsubpb.NewSubscriberClient(conn).Pull(ctx, &pubsubpb.PullRequest{Subscription: changes.Name, MaxMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range out.GetReceivedMessages() {
		a := m.GetMessage().GetAttributes()
		got = append(got, a["eventType"]+" "+strings.TrimPrefix(a["versionId"], answer+"/versions/"))
	}
	want := []string{"SECRET_CREATE ", "SECRET_VERSION_ADD 1", "SECRET_VERSION_ADD 2", "SECRET_VERSION_DISABLE 1", "SECRET_VERSION_ENABLE 1", "SECRET_VERSION_DESTROY 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notifications: -want, +got:\n%s", diff)
	}
}

// TestRejects makes calls that no client of the provider makes.
func TestRejects(t *testing.T) {
	srv, conn := dial(t)
	ctx, c, sub := as(t, srv), pb.NewSecretManagerServiceClient(conn), pubsubpb.NewSubscriberClient(conn)
	srv.Put("db", []byte("x"))
	changes := srv.AddSubscription("changes").Name
	in := func(locations ...string) *pb.Replication {
		u := &pb.Replication_UserManaged{}
		for _, l := range locations {
			u.Replicas = append(u.Replicas, &pb.Replication_UserManaged_Replica{Location: l})
		}
		return &pb.Replication{Replication: &pb.Replication_UserManaged_{UserManaged: u}}
	}
	add := func(p *pb.SecretPayload) error {
		_, err := c.AddSecretVersion(ctx, &pb.AddSecretVersionRequest{Parent: parent + "/secrets/db", Payload: p})
		return err
	}
	read := func(name string) error {
		_, err := c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: name})
		return err
	}
	createIn := func(parent, id string, s *pb.Secret) error {
		_, err := c.CreateSecret(ctx, &pb.CreateSecretRequest{Parent: parent, SecretId: id, Secret: s})
		return err
	}
	create := func(s *pb.Secret) error {
		if s.Replication == nil {
			s.Replication = in("us-east1")
		}
		return createIn(parent, "new", s)
	}
	update := func(s *pb.Secret, paths ...string) error {
		s.Name = parent + "/secrets/db"
		_, err := c.UpdateSecret(ctx, &pb.UpdateSecretRequest{Secret: s, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
		return err
	}
	list := func(in *pb.ListSecretsRequest) error {
		in.Parent = parent
		_, err := c.ListSecrets(ctx, in)
		return err
	}
	pull := func(subscription string, n int32) error {
		_, err := sub.Pull(ctx, &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: n})
		return err
	}
	topics := make([]*pb.Topic, 11)
	for i := range topics {
		topics[i] = &pb.Topic{Name: fmt.Sprintf("projects/p/topics/%d", i)}
	}
	_, noReceipts := sub.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: changes})
	_, longDeadline := sub.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: changes, AckIds: []string{"a"}, AckDeadlineSeconds: 601})
	for _, tc := range []struct {
		reason string
		err    error
		text   string
	}{
		{"A value is too large.", add(&pb.SecretPayload{Data: make([]byte, emulator.MaxPayload+1)}), "exceeds"},
		{"A checksum is wrong.", add(&pb.SecretPayload{Data: []byte("x"), DataCrc32C: proto.Int64(1)}), "checksum"},
		{"A payload is missing.", add(nil), "payload"},
		{"A name has no version.", read(parent + "/secrets/db"), "Version ID"},
		{"An ID has a slash.", createIn(parent, "a/b", automatic()), "Secret ID"},
		{"A global secret has no replication.", createIn(parent, "a", &pb.Secret{}), "replication"},
		{"A regional secret has a replication.", createIn(parent+"/locations/us-east1", "a", automatic()), "must not be set"},
		{"A replication has no replicas.", create(&pb.Secret{Replication: in()}), "replicas"},
		{"Two replicas have one location.", create(&pb.Secret{Replication: in("us-east1", "us-east1")}), "replica"},
		{"The key of an annotation has a slash.", create(&pb.Secret{Annotations: map[string]string{"a.io/b": ""}}), "annotation"},
		{"Annotations have 16 KiB.", create(&pb.Secret{Annotations: map[string]string{"a": strings.Repeat("x", 16<<10-1)}}), "bytes"},
		{"The key of a label has a dot.", create(&pb.Secret{Labels: map[string]string{"a.b": ""}}), "label"},
		{"There are too many topics.", create(&pb.Secret{Topics: topics}), "topics"},
		{"A topic has no full name.", create(&pb.Secret{Topics: []*pb.Topic{{Name: "t"}}}), "topic"},
		{"An update has no mask.", update(&pb.Secret{}), "mask"},
		{"A replication cannot change.", update(automatic(), "replication"), "immutable"},
		{"An alias names a missing version.", update(&pb.Secret{VersionAliases: map[string]int64{"x": 9}}, "version_aliases"), "does not exist"},
		{"An alias is a number.", update(&pb.Secret{VersionAliases: map[string]int64{"1": 1}}, "version_aliases"), "not valid"},
		{"A filter is not emulated.", list(&pb.ListSecretsRequest{Filter: "labels.odd=1 OR name:s"}), "Invalid filter"},
		{"A page token is not valid.", list(&pb.ListSecretsRequest{PageToken: "?"}), "page token"},
		{"A page size is negative.", list(&pb.ListSecretsRequest{PageSize: -1}), "page size"},
		{"A subscription is only an ID.", pull("changes", 1), "Invalid [subscriptions] name"},
		{"No messages are asked for.", pull(changes, 0), "max_messages"},
		{"No receipts are given.", noReceipts, "No ack ids"},
		{"A deadline is too long.", longDeadline, "ack deadline"},
	} {
		is(t, tc.reason, tc.err, codes.InvalidArgument, tc.text)
	}
	is(t, "an alias", update(&pb.Secret{VersionAliases: map[string]int64{"old": 1}}, "version_aliases"), codes.OK, "")
	is(t, "an alias", read(parent+"/secrets/db/versions/old"), codes.OK, "")
	is(t, "another etag", update(&pb.Secret{Etag: `"1"`}, "labels"), codes.FailedPrecondition, "etag")
	_, err := c.DeleteSecret(ctx, &pb.DeleteSecretRequest{Name: parent + "/secrets/db", Etag: `"1"`})
	is(t, "another etag", err, codes.FailedPrecondition, "etag")
	srv.Put("db", []byte("x"), emulator.Labels(map[string]string{"team": "shop"}))
	if out, err := c.ListSecrets(ctx, &pb.ListSecretsRequest{Parent: parent, Filter: "labels.team:*"}); err != nil || len(out.GetSecrets()) != 1 {
		t.Errorf("secrets with a label: %v, %v", out, err)
	}
	if _, err := emulator.Start(emulator.WithAddress("0.0.0.0:0")); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("the emulator must be reachable from its own host only: %v", err)
	}
}

// TestLogins sends login requests that the provider's client never sends. The tests of the client cover the
// others.
func TestLogins(t *testing.T) {
	srv, c := start(t, emulator.WithMachine("machine@p"))
	srv.AddToken("narrow", "test", time.Now().Add(time.Hour), "https://www.googleapis.com/auth/devstorage.read_only")
	_, err := c.ListSecrets(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer narrow"), &pb.ListSecretsRequest{Parent: parent})
	is(t, "another scope", err, codes.PermissionDenied, "insufficient authentication scopes")
	page, err := http.Get(srv.URL() + "/computeMetadata/v1/instance/service-accounts/default/token")
	if err != nil || page.Body.Close() != nil || page.StatusCode != http.StatusForbidden {
		t.Errorf("a request without the header Metadata-Flavor, as of a web page: %v, %v", page, err)
	}
	srv.AddProvider(emulator.Provider{Audience: "//pool"})
	const (
		exchange = "urn:ietf:params:oauth:grant-type:token-exchange"
		kind     = "urn:ietf:params:oauth:token-type:jwt"
		access   = "urn:ietf:params:oauth:token-type:access_token"
	)
	good := emulator.NewToken("i", "s", "//pool", time.Now().Add(time.Hour))
	with := func(more ...string) url.Values {
		f := url.Values{"grant_type": {exchange}, "audience": {"//pool"}, "scope": {"https://www.googleapis.com/auth/cloud-platform"}, "requested_token_type": {access}, "subject_token_type": {kind}, "subject_token": {good}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	for name, tc := range map[string]struct {
		path string
		form url.Values
		code int
		want string
	}{
		"Good":        {"/v1/token", with(), 200, ""},
		"Grant":       {"/token", url.Values{}, 400, "unsupported_grant_type"},
		"STSGrant":    {"/v1/token", with("grant_type", "x"), 400, "unsupported_grant_type"},
		"Type":        {"/v1/token", with("subject_token_type", "x"), 400, "invalid_request"},
		"Impersonate": {"/v1/projects/-/serviceAccounts/a@b:generateAccessToken", nil, 401, "UNAUTHENTICATED"},
		"Method":      {"/v1/projects/-/serviceAccounts/a@b:signJwt", nil, 404, "NOT_FOUND"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := http.PostForm(srv.URL()+tc.path, tc.form)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }() // The body has been read.
			b, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tc.code || !strings.Contains(string(b), tc.want) || !json.Valid(b) {
				t.Errorf("%s: %s, %v, want %d %s", resp.Status, b, err, tc.code, tc.want)
			}
		})
	}
}
