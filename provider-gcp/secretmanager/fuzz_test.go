package secretmanager

import (
	"context"
	"regexp"
	"strings"
	"testing"

	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// FuzzNames uses arbitrary keys and versions, and arbitrary names in the answers.
func FuzzNames(f *testing.F) {
	f.Add("db", "1", "projects/1/secrets/db/versions/1")
	f.Add("projects/p/secrets/db", "latest", "projects/1/secrets/db/versions/2/x")
	f.Add("../db", "1/../2", "secrets//versions/")
	f.Add("projects/p/secrets/projects/p/secrets/db", "٣", "projects/1/secrets/db/versions/٣")
	plain := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	c := &Client{parent: "projects/p"}
	f.Fuzz(func(t *testing.T, key, version, name string) {
		id, err := c.idOf(key)
		switch {
		case err != nil && (provider.ClassOf(err) != provider.Invalid || len(err.Error()) > 1000):
			t.Errorf("idOf(%q): %s", key, err)
		case err == nil && (!plain.MatchString(id) || key != id && key != "projects/p/secrets/"+id):
			t.Errorf("idOf(%q) = %q", key, id)
		}
		v, err := versionOf(version)
		if err == nil && (!plain.MatchString(v) || version != "" && v != version) {
			t.Errorf("versionOf(%q) = %q", version, v)
		}
		if n, ok := numberOf(name, id); ok && (!number.MatchString(n) || !strings.HasSuffix(name, "/secrets/"+id+"/versions/"+n)) {
			t.Errorf("numberOf(%q, %q) = %q", name, id, n)
		}
		for term := range strings.SplitSeq(filter(provider.Query{Path: key, Tags: map[string]string{version: name, name: key}}), " AND ") {
			if term != "" && !regexp.MustCompile(`^(name:|labels\.[a-z0-9_-]+=)[A-Za-z0-9_-]+$`).MatchString(term) {
				t.Errorf("the filter has a term %q", term)
			}
		}
	})
}

// wire is an API whose answers are decoded from raw bytes. Lists end after a few pages.
type wire struct {
	pb.SecretManagerServiceClient

	version, page []byte
	pages         int
}

func (w *wire) AccessSecretVersion(context.Context, *pb.AccessSecretVersionRequest, ...grpc.CallOption) (*pb.AccessSecretVersionResponse, error) {
	return received(w.version, &pb.AccessSecretVersionResponse{})
}

func (w *wire) ListSecrets(context.Context, *pb.ListSecretsRequest, ...grpc.CallOption) (*pb.ListSecretsResponse, error) {
	if w.pages++; w.pages > 4 {
		return &pb.ListSecretsResponse{}, nil
	}
	return received(w.page, &pb.ListSecretsResponse{})
}

// received decodes an answer, as gRPC does.
func received[M proto.Message](raw []byte, m M) (M, error) {
	if err := proto.Unmarshal(raw, m); err != nil {
		return m, status.Error(codes.Internal, err.Error())
	}
	return m, nil
}

// FuzzAnswers uses arbitrary successful answers. None is NotFound, and each value is that of the requested
// secret.
func FuzzAnswers(f *testing.F) {
	c := client(f, start(f))
	encode := func(m proto.Message) []byte {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		return raw
	}
	page := encode(&pb.ListSecretsResponse{Secrets: []*pb.Secret{{Name: "projects/1/secrets/db"}, {}}, NextPageToken: "next"})
	for _, v := range []*pb.AccessSecretVersionResponse{
		{Name: "projects/1/secrets/db/versions/3", Payload: &pb.SecretPayload{Data: []byte("hunter2"), DataCrc32C: proto.Int64(1)}},
		{Name: "projects/1/secrets/db/versions/3", Payload: &pb.SecretPayload{}},
		{Name: "projects/1/secrets/db/versions/latest", Payload: &pb.SecretPayload{Data: []byte("hunter2")}},
		{Name: "projects/1/secrets/other/versions/3", Payload: &pb.SecretPayload{Data: []byte("hunter2")}},
		{},
	} {
		f.Add(encode(v), page)
	}
	f.Add([]byte("\xff"), []byte("\x0a\xff"))
	f.Fuzz(func(t *testing.T, version, page []byte) {
		c.api = &wire{version: version, page: page}
		checkAnswer := func(v provider.Value, err error) {
			t.Helper()
			switch {
			case err == nil && (v.Data == nil || !number.MatchString(v.Version)):
				t.Errorf("%q, %q yield %+v", version, page, v)
			case err != nil && provider.IsNotFound(err):
				t.Errorf("%q, %q are taken for a definite answer: %s", version, page, err)
			case err != nil && len(err.Error()) > 1000:
				t.Errorf("%q, %q: the message has %d bytes", version, page, len(err.Error()))
			}
		}
		checkAnswer(c.Get(t.Context(), provider.Ref{Key: "db"}))
		for v, err := range c.Find(t.Context(), provider.Query{Path: "d"}) {
			checkAnswer(v, err)
		}
		checkAnswer(provider.Value{Data: []byte{}, Version: "1"}, c.Check(t.Context()))
	})
}
