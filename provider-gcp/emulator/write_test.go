package emulator_test

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

func in(locations ...string) *pb.Replication {
	u := &pb.Replication_UserManaged{}
	for _, l := range locations {
		u.Replicas = append(u.Replicas, &pb.Replication_UserManaged_Replica{Location: l})
	}
	return &pb.Replication{Replication: &pb.Replication_UserManaged_{UserManaged: u}}
}

func TestCreateSettings(t *testing.T) {
	many := func(n int) (topics []*pb.Topic) {
		for i := range n {
			topics = append(topics, &pb.Topic{Name: fmt.Sprintf("projects/p/topics/%d", i)})
		}
		return topics
	}
	cases := map[string]struct {
		reason string
		parent string
		secret *pb.Secret
		code   codes.Code
		text   string
	}{
		"All": {"All settings in the request are stored.", parent, &pb.Secret{
			Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"a.b_c-d": "any é text"}, Topics: many(10), Replication: in("europe-west3", "us-east1"),
		}, codes.OK, ""},
		"Regional":       {"A regional secret has no replication.", parent + "/locations/us-east1", &pb.Secret{Annotations: map[string]string{"a": "b"}}, codes.OK, ""},
		"Replicated":     {"A replication for a regional secret is rejected.", parent + "/locations/us-east1", &pb.Secret{Replication: in("us-east1")}, codes.InvalidArgument, "must not be set"},
		"NoReplica":      {"A replication without replicas is rejected.", parent, &pb.Secret{Replication: in()}, codes.InvalidArgument, "replicas"},
		"TwiceThere":     {"Two replicas with one location are rejected.", parent, &pb.Secret{Replication: in("us-east1", "us-east1")}, codes.InvalidArgument, "replica"},
		"Slash":          {"An annotation key with a slash is rejected.", parent, &pb.Secret{Replication: in("x"), Annotations: map[string]string{"a.io/b": ""}}, codes.InvalidArgument, "annotation"},
		"Dot":            {"An annotation key must end with a letter or digit.", parent, &pb.Secret{Replication: in("x"), Annotations: map[string]string{"a.": ""}}, codes.InvalidArgument, "annotation"},
		"Annotations":    {"Annotations of 16 KiB are rejected.", parent, &pb.Secret{Replication: in("x"), Annotations: map[string]string{"a": strings.Repeat("x", 16<<10-1)}}, codes.InvalidArgument, "bytes"},
		"MostAnnotation": {"Annotations of less than 16 KiB are accepted.", parent, &pb.Secret{Replication: in("x"), Annotations: map[string]string{"a": strings.Repeat("x", 16<<10-2)}}, codes.OK, ""},
		"Labels":         {"An invalid label is rejected.", parent, &pb.Secret{Replication: in("x"), Labels: map[string]string{"a.b": ""}}, codes.InvalidArgument, "label"},
		"Topics":         {"Too many topics are rejected.", parent, &pb.Secret{Replication: in("x"), Topics: many(11)}, codes.InvalidArgument, "topics"},
		"Topic":          {"A topic without its full name is rejected.", parent, &pb.Secret{Replication: in("x"), Topics: []*pb.Topic{{Name: "t"}}}, codes.InvalidArgument, "topic"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, c := start(t)
			ctx := as(t, srv)
			_, err := c.CreateSecret(ctx, &pb.CreateSecretRequest{Parent: tc.parent, SecretId: "s", Secret: tc.secret})
			is(t, tc.reason, err, tc.code, tc.text)
			got, err := c.GetSecret(ctx, &pb.GetSecretRequest{Name: tc.parent + "/secrets/s"})
			if tc.code != codes.OK {
				is(t, tc.reason, err, codes.NotFound, "not found")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got.Name, got.CreateTime, got.Etag = "", nil, ""
			if !proto.Equal(tc.secret, got) {
				t.Errorf("%s\n%v, want %v", tc.reason, got, tc.secret)
			}
		})
	}
}

func TestEtags(t *testing.T) {
	srv, c := start(t)
	ctx := as(t, srv)
	srv.Put("db", []byte("one"))
	name := parent + "/secrets/db"
	etag := func() string {
		t.Helper()
		s, err := c.GetSecret(ctx, &pb.GetSecretRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return s.GetEtag()
	}
	update := func(etag string, s *pb.Secret, paths ...string) error {
		s.Name, s.Etag = name, etag
		_, err := c.UpdateSecret(ctx, &pb.UpdateSecretRequest{Secret: s, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
		return err
	}
	first := etag()
	if _, err := c.AddSecretVersion(ctx, &pb.AddSecretVersionRequest{Parent: name, Payload: &pb.SecretPayload{Data: []byte("two")}}); err != nil {
		t.Fatal(err)
	}
	if etag() != first {
		t.Error("a new version must not change the etag of its secret")
	}
	is(t, "fresh", update(first, &pb.Secret{Annotations: map[string]string{"a": "b"}, Topics: []*pb.Topic{{Name: "projects/p/topics/t"}}}, "annotations", "topics"), codes.OK, "")
	second := etag()
	is(t, "stale", update(first, &pb.Secret{}, "annotations"), codes.FailedPrecondition, "etag")
	is(t, "for good", update(second, &pb.Secret{Replication: in("us-east1")}, "replication"), codes.InvalidArgument, "immutable")
	is(t, "bad key", update(second, &pb.Secret{Annotations: map[string]string{"a/b": ""}}, "annotations"), codes.InvalidArgument, "annotation")
	is(t, "bad topic", update(second, &pb.Secret{Topics: []*pb.Topic{{Name: "t"}}}, "topics"), codes.InvalidArgument, "topic")
	s, err := c.GetSecret(ctx, &pb.GetSecretRequest{Name: name})
	if diff := cmp.Diff(map[string]string{"a": "b"}, s.GetAnnotations()); diff != "" || err != nil || len(s.GetTopics()) != 1 || s.GetEtag() != second {
		t.Errorf("a failed call must change nothing: %v, %v", s, err)
	}
	is(t, "no change", update(second, &pb.Secret{}, "labels"), codes.OK, "")
	if etag() == second {
		t.Error("an update without changes must change the etag, too")
	}
	_, err = c.DeleteSecret(ctx, &pb.DeleteSecretRequest{Name: name, Etag: second})
	is(t, "delete stale", err, codes.FailedPrecondition, "etag")
	v, err := c.GetSecretVersion(ctx, &pb.GetSecretVersionRequest{Name: name + "/versions/1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.DisableSecretVersion(ctx, &pb.DisableSecretVersionRequest{Name: name + "/versions/1", Etag: v.GetEtag()})
	is(t, "disable", err, codes.OK, "")
	_, err = c.DestroySecretVersion(ctx, &pb.DestroySecretVersionRequest{Name: name + "/versions/1", Etag: v.GetEtag()})
	is(t, "destroy stale", err, codes.FailedPrecondition, "etag")
	_, err = c.DeleteSecret(ctx, &pb.DeleteSecretRequest{Name: name, Etag: etag()})
	is(t, "delete", err, codes.OK, "")
}

func TestFaultsOfWrites(t *testing.T) {
	srv, c := start(t)
	ctx := as(t, srv)
	create := func(id string) error {
		_, err := c.CreateSecret(ctx, &pb.CreateSecretRequest{Parent: parent, SecretId: id, Secret: automatic()})
		return err
	}
	crc := int64(crc32.Checksum([]byte("x"), crc32.MakeTable(crc32.Castagnoli)))
	add := func(id string, crc int64) (*pb.SecretVersion, error) {
		return c.AddSecretVersion(ctx, &pb.AddSecretVersionRequest{Parent: parent + "/secrets/" + id, Payload: &pb.SecretPayload{Data: []byte("x"), DataCrc32C: &crc}})
	}
	defer srv.Inject(emulator.Fault{Call: "CreateSecret", Key: "a", Code: codes.PermissionDenied, Message: "no"})()
	is(t, "a fault can select a secret that does not exist yet", create("a"), codes.PermissionDenied, "no")
	is(t, "another", create("b"), codes.OK, "")
	srv.Put("c", nil, emulator.Empty())
	remove := srv.Inject(emulator.Fault{Call: "AddSecretVersion", Body: emulator.BodyLost, Times: 1})
	_, err := add("c", crc)
	is(t, "lost", err, codes.Unavailable, "")
	remove()
	out, err := c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: parent + "/secrets/c/versions/1"})
	if err != nil || string(out.GetPayload().GetData()) != "x" {
		t.Errorf("a call without an answer must have its effect: %v, %v", out, err)
	}
	_, err = add("c", crc+1)
	is(t, "wrong checksum", err, codes.InvalidArgument, "checksum")
	_, err = c.AddSecretVersion(ctx, &pb.AddSecretVersionRequest{Parent: parent + "/secrets/c", Payload: &pb.SecretPayload{}})
	is(t, "an empty value is rejected like a missing one", err, codes.InvalidArgument, "payload")
	v, err := add("c", crc)
	if err != nil || !v.GetClientSpecifiedPayloadChecksum() {
		t.Errorf("a wrong checksum must be rejected: %v, %v", v, err)
	}
	for body, want := range map[emulator.BodyFault]struct {
		id      string
		checked bool
	}{emulator.BodyNoPayload: {"c", false}, emulator.BodyOtherName: {"another", true}} {
		remove := srv.Inject(emulator.Fault{Call: "AddSecretVersion", Body: body})
		v, err := add("c", crc)
		if err != nil || v.GetClientSpecifiedPayloadChecksum() != want.checked || !strings.Contains(v.GetName(), "/secrets/"+want.id+"/versions/") {
			t.Errorf("%s: %v, %v", body, v, err)
		}
		remove()
	}
	srv.Put("d", []byte("global"))
	srv.Put("d", []byte("there"), emulator.At("us-east1"))
	srv.Delete("d", emulator.At("us-east1"))
	_, err = c.GetSecret(ctx, &pb.GetSecretRequest{Name: parent + "/locations/us-east1/secrets/d"})
	is(t, "deleted there", err, codes.NotFound, "")
	_, err = c.GetSecret(ctx, &pb.GetSecretRequest{Name: parent + "/secrets/d"})
	is(t, "but not here", err, codes.OK, "")
}
