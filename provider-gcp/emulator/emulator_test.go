package emulator_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

func TestLifecycle(t *testing.T) {
	srv, c := start(t)
	ctx := as(t, srv)
	for _, tc := range []struct {
		parent, answer string
		secret         *pb.Secret
	}{
		{parent, "projects/" + emulator.DefaultProjectNumber, automatic()},
		{parent + "/locations/europe-west3", "projects/" + emulator.DefaultProjectNumber + "/locations/europe-west3", &pb.Secret{}},
	} {
		name, answer := tc.parent+"/secrets/db", tc.answer+"/secrets/db"
		_, err := c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: name + "/versions/latest"})
		is(t, "no secret", err, codes.NotFound, "Secret ["+answer+"] not found or has no versions.")
		s, err := c.CreateSecret(ctx, &pb.CreateSecretRequest{Parent: tc.parent, SecretId: "db", Secret: tc.secret})
		if err != nil || s.GetName() != answer {
			t.Fatalf("CreateSecret: %v, %v", s, err)
		}
		_, err = c.CreateSecret(ctx, &pb.CreateSecretRequest{Parent: tc.parent, SecretId: "db", Secret: tc.secret})
		is(t, "twice", err, codes.AlreadyExists, "already exists")
		_, err = c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: name + "/versions/latest"})
		is(t, "no version", err, codes.NotFound, "has no versions")
		for _, data := range []string{"one", "two"} {
			if _, err = c.AddSecretVersion(ctx, &pb.AddSecretVersionRequest{Parent: name, Payload: &pb.SecretPayload{Data: []byte(data)}}); err != nil {
				t.Fatal(err)
			}
		}
		out, err := c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: name + "/versions/latest"})
		want := &pb.AccessSecretVersionResponse{Name: answer + "/versions/2", Payload: &pb.SecretPayload{
			Data: []byte("two"), DataCrc32C: proto.Int64(int64(crc32.Checksum([]byte("two"), crc32.MakeTable(crc32.Castagnoli)))),
		}}
		if err != nil || !proto.Equal(want, out) {
			t.Errorf("AccessSecretVersion: %v, %v, want %v", out, err, want)
		}
		states(ctx, t, c, name, answer)
		if _, err := c.DeleteSecret(ctx, &pb.DeleteSecretRequest{Name: name}); err != nil {
			t.Error(err)
		}
		_, err = c.GetSecret(ctx, &pb.GetSecretRequest{Name: name})
		is(t, "deleted", err, codes.NotFound, "not found")
	}
}

// states moves the first version of a secret through all states.
func states(ctx context.Context, t *testing.T, c pb.SecretManagerServiceClient, name, answer string) {
	t.Helper()
	first := name + "/versions/1"
	if v, err := c.DisableSecretVersion(ctx, &pb.DisableSecretVersionRequest{Name: first}); err != nil || v.GetState() != pb.SecretVersion_DISABLED {
		t.Errorf("DisableSecretVersion: %v, %v", v, err)
	}
	_, err := c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: first})
	is(t, "disabled", err, codes.FailedPrecondition, "Secret Version ["+answer+"/versions/1] is in DISABLED state.")
	if v, err := c.EnableSecretVersion(ctx, &pb.EnableSecretVersionRequest{Name: first}); err != nil || v.GetState() != pb.SecretVersion_ENABLED {
		t.Errorf("EnableSecretVersion: %v, %v", v, err)
	}
	if v, err := c.DestroySecretVersion(ctx, &pb.DestroySecretVersionRequest{Name: first}); err != nil || v.GetState() != pb.SecretVersion_DESTROYED || v.GetDestroyTime() == nil {
		t.Errorf("DestroySecretVersion: %v, %v", v, err)
	}
	_, err = c.EnableSecretVersion(ctx, &pb.EnableSecretVersionRequest{Name: first})
	is(t, "destroyed for good", err, codes.FailedPrecondition, "DESTROYED")
	if v, err := c.GetSecretVersion(ctx, &pb.GetSecretVersionRequest{Name: first}); err != nil || v.GetState() != pb.SecretVersion_DESTROYED {
		t.Errorf("GetSecretVersion: %v, %v", v, err)
	}
	if all, err := c.ListSecretVersions(ctx, &pb.ListSecretVersionsRequest{Parent: name}); err != nil || len(all.GetVersions()) != 2 || all.GetVersions()[0].GetName() != answer+"/versions/2" {
		t.Errorf("ListSecretVersions: %v, %v", all, err)
	}
}

func TestUpdate(t *testing.T) {
	srv, c := start(t)
	ctx := as(t, srv)
	srv.Put("db", []byte("one"))
	srv.Put("db", []byte("two"))
	name := parent + "/secrets/db"
	update := func(s *pb.Secret, paths ...string) error {
		s.Name = name
		_, err := c.UpdateSecret(ctx, &pb.UpdateSecretRequest{Secret: s, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
		return err
	}
	if err := update(&pb.Secret{Labels: map[string]string{"team": "shop"}, VersionAliases: map[string]int64{"old": 1}}, "labels", "version_aliases"); err != nil {
		t.Fatal(err)
	}
	s, err := c.GetSecret(ctx, &pb.GetSecretRequest{Name: name})
	if err != nil || !cmp.Equal(s.GetLabels(), map[string]string{"team": "shop"}) {
		t.Errorf("GetSecret: %v, %v", s, err)
	}
	out, err := c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: name + "/versions/old"})
	if err != nil || string(out.GetPayload().GetData()) != "one" || !strings.HasSuffix(out.GetName(), "/versions/1") {
		t.Errorf("an alias: %v, %v", out, err)
	}
	is(t, "no mask", update(&pb.Secret{}), codes.InvalidArgument, "mask")
	is(t, "stale", update(&pb.Secret{Etag: `"1"`}, "labels"), codes.FailedPrecondition, "etag")
	is(t, "alias of nothing", update(&pb.Secret{VersionAliases: map[string]int64{"x": 9}}, "version_aliases"), codes.InvalidArgument, "does not exist")
	is(t, "alias like a number", update(&pb.Secret{VersionAliases: map[string]int64{"1": 1}}, "version_aliases"), codes.InvalidArgument, "not valid")
	is(t, "label", update(&pb.Secret{Labels: map[string]string{"Team": "x"}}, "labels"), codes.InvalidArgument, "label")
	if s, err = c.GetSecret(ctx, &pb.GetSecretRequest{Name: name}); err != nil || s.GetLabels()["team"] != "shop" || s.GetVersionAliases()["old"] != 1 {
		t.Errorf("a failed update must change nothing: %v, %v", s, err)
	}
}

func TestRejects(t *testing.T) {
	srv, c := start(t)
	ctx := as(t, srv)
	srv.Put("db", []byte("x"))
	add := func(p *pb.SecretPayload) error {
		_, err := c.AddSecretVersion(ctx, &pb.AddSecretVersionRequest{Parent: parent + "/secrets/db", Payload: p})
		return err
	}
	read := func(name string) error {
		_, err := c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: name})
		return err
	}
	create := func(id string, s *pb.Secret) error {
		_, err := c.CreateSecret(ctx, &pb.CreateSecretRequest{Parent: parent, SecretId: id, Secret: s})
		return err
	}
	is(t, "largest", add(&pb.SecretPayload{Data: make([]byte, emulator.MaxPayload)}), codes.OK, "")
	is(t, "too large", add(&pb.SecretPayload{Data: make([]byte, emulator.MaxPayload+1)}), codes.InvalidArgument, "exceeds")
	is(t, "checksum", add(&pb.SecretPayload{Data: []byte("x"), DataCrc32C: proto.Int64(1)}), codes.InvalidArgument, "checksum")
	is(t, "no payload", add(nil), codes.InvalidArgument, "payload")
	is(t, "no such version", read(parent+"/secrets/db/versions/3"), codes.NotFound, "Secret Version [")
	is(t, "no such alias", read(parent+"/secrets/db/versions/x"), codes.NotFound, "alias")
	is(t, "no version", read(parent+"/secrets/db"), codes.InvalidArgument, "Version ID")
	is(t, "another project", read("projects/other/secrets/db/versions/1"), codes.PermissionDenied, "Permission denied on resource project other")
	is(t, "number", read("projects/"+emulator.DefaultProjectNumber+"/secrets/db/versions/1"), codes.OK, "")
	is(t, "bad id", create("a/b", automatic()), codes.InvalidArgument, "Secret ID")
	is(t, "no replication", create("a", &pb.Secret{}), codes.InvalidArgument, "replication")
	_, err := c.AccessSecretVersion(t.Context(), &pb.AccessSecretVersionRequest{Name: parent + "/secrets/db/versions/1"})
	is(t, "no token", err, codes.Unauthenticated, "invalid authentication credentials")
	if _, err := emulator.Start(emulator.WithAddress("0.0.0.0:0")); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("the emulator must be reachable from its own host only: %v", err)
	}
}

func TestList(t *testing.T) {
	srv, c := start(t, emulator.WithPageSize(4))
	ctx := as(t, srv)
	for i := range 10 {
		srv.Put(fmt.Sprintf("s%d", i), nil, emulator.Labels(map[string]string{"odd": fmt.Sprint(i % 2)}))
	}
	srv.Put("far", nil, emulator.At("europe-west3"))
	list := func(size int32, filter string) (ids []string, pages int, err error) {
		in := &pb.ListSecretsRequest{Parent: parent, PageSize: size, Filter: filter}
		for {
			out, err := c.ListSecrets(ctx, in)
			if err != nil {
				return nil, 0, err
			}
			pages++
			for _, s := range out.GetSecrets() {
				ids = append(ids, s.GetName()[strings.LastIndexByte(s.GetName(), '/')+1:])
			}
			if in.PageToken = out.GetNextPageToken(); in.PageToken == "" {
				return ids, pages, nil
			}
		}
	}
	for _, tc := range []struct {
		size   int32
		filter string
		want   string
		pages  int
	}{
		{0, "", "s9 s8 s7 s6 s5 s4 s3 s2 s1 s0", 3},
		{1000, "", "s9 s8 s7 s6 s5 s4 s3 s2 s1 s0", 3},
		{3, "", "s9 s8 s7 s6 s5 s4 s3 s2 s1 s0", 4},
		{0, "labels.odd=1", "s9 s7 s5 s3 s1", 2},
		{0, "labels.odd=1 AND name:S3", "s3", 1},
		{0, "labels.odd:*", "s9 s8 s7 s6 s5 s4 s3 s2 s1 s0", 3},
		{0, "labels.none:*", "", 1},
	} {
		ids, pages, err := list(tc.size, tc.filter)
		if got := strings.Join(ids, " "); err != nil || got != tc.want || pages != tc.pages {
			t.Errorf("pages of %d, filter %q: %s in %d pages, %v", tc.size, tc.filter, got, pages, err)
		}
	}
	for _, bad := range []string{"team", "labels.odd=1 OR name:s", "create_time>1", "NOT name:s"} {
		_, _, err := list(0, bad)
		is(t, bad, err, codes.InvalidArgument, "Invalid filter")
	}
	_, err := c.ListSecrets(ctx, &pb.ListSecretsRequest{Parent: parent, PageToken: "?"})
	is(t, "token", err, codes.InvalidArgument, "page token")
	_, err = c.ListSecrets(ctx, &pb.ListSecretsRequest{Parent: parent, PageSize: -1})
	is(t, "size", err, codes.InvalidArgument, "page size")
}

func TestFaults(t *testing.T) {
	srv, c := start(t)
	ctx := as(t, srv)
	srv.Put("a", []byte("x"))
	srv.Put("b", []byte("x"))
	read := func(ctx context.Context, id string) error {
		_, err := c.AccessSecretVersion(ctx, &pb.AccessSecretVersionRequest{Name: parent + "/secrets/" + id + "/versions/1"})
		return err
	}
	remove := srv.Inject(emulator.Fault{Key: "a*", Code: codes.Aborted, Message: "m", Times: 1})
	is(t, "other secret", read(ctx, "b"), codes.OK, "")
	is(t, "first", read(ctx, "a"), codes.Aborted, "m")
	is(t, "spent", read(ctx, "a"), codes.OK, "")
	remove()
	remove()
	remove = srv.Inject(emulator.Fault{Hang: true})
	ended := make(chan error, 1)
	go func() { ended <- read(ctx, "a") }()
	if err := srv.Wait(ctx, 4, "AccessSecretVersion"); err != nil {
		t.Fatal(err)
	}
	remove()
	is(t, "released", <-ended, codes.OK, "")
	defer srv.Inject(emulator.Fault{Latency: 30 * time.Millisecond})()
	began := time.Now()
	is(t, "late", read(ctx, "a"), codes.OK, "")
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("a call took %s, want 30ms at least", took)
	}
	if n := srv.Count(); n != 5 {
		t.Errorf("%d calls, want 5: those that fail count, too", n)
	}
	log := srv.Calls()
	if last := log[len(log)-1]; last.Method != "AccessSecretVersion" || last.Name != parent+"/secrets/a/versions/1" || last.Caller != "test" {
		t.Errorf("last call: %+v", last)
	}
}

func TestTokensExpire(t *testing.T) {
	var ahead atomic.Int64
	srv, c := start(t, emulator.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	ctx := as(t, srv)
	if _, err := c.ListSecrets(ctx, &pb.ListSecretsRequest{Parent: parent}); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(2 * time.Hour))
	_, err := c.ListSecrets(ctx, &pb.ListSecretsRequest{Parent: parent})
	is(t, "expired", err, codes.Unauthenticated, "")
}

// TestLogins sends login requests that the provider's client never sends. The tests of the client cover the
// others.
func TestLogins(t *testing.T) {
	srv, _ := start(t)
	srv.AddProvider(emulator.Provider{Audience: "//pool"})
	const (
		jwt      = "urn:ietf:params:oauth:grant-type:jwt-bearer"
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
		"NoJWT":       {"/token", url.Values{"grant_type": {jwt}, "assertion": {"x"}}, 400, "invalid_grant"},
		"Unsigned":    {"/token", url.Values{"grant_type": {jwt}, "assertion": {good}}, 400, "invalid_grant"},
		"STSGrant":    {"/v1/token", with("grant_type", "x"), 400, "unsupported_grant_type"},
		"Type":        {"/v1/token", with("subject_token_type", "x"), 400, "invalid_request"},
		"Scope":       {"/v1/token", with("scope", ""), 400, "invalid_scope"},
		"NoSuchScope": {"/v1/token", with("scope", "https://www.googleapis.com/auth/cloud-platform x"), 400, "invalid_scope"},
		"Target":      {"/v1/token", with("audience", "x"), 400, "invalid_target"},
		"Subject":     {"/v1/token", with("subject_token", "x"), 400, "invalid_grant"},
		"Audience":    {"/v1/token", with("subject_token", emulator.NewToken("i", "s", "other", time.Now().Add(time.Hour))), 400, "invalid_grant"},
		"Expired":     {"/v1/token", with("subject_token", emulator.NewToken("i", "s", "//pool", time.Now())), 400, "invalid_grant"},
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

// TestScopes uses a token for other scopes.
func TestScopes(t *testing.T) {
	srv, c := start(t)
	srv.AddToken("narrow", "test", time.Now().Add(time.Hour), "https://www.googleapis.com/auth/devstorage.read_only")
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer narrow")
	_, err := c.ListSecrets(ctx, &pb.ListSecretsRequest{Parent: parent})
	is(t, "list", err, codes.PermissionDenied, "insufficient authentication scopes")
	srv.AddServiceAccount("a@b", "test")
	srv.AddToken("wide", "test", time.Now().Add(time.Hour))
	for token, want := range map[string]int{"narrow": http.StatusForbidden, "wide": http.StatusOK} {
		body := strings.NewReader(`{"scope":["openid"],"lifetime":"60s"}`)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL()+"/v1/projects/-/serviceAccounts/a@b:generateAccessToken", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // Only the status matters.
		if resp.StatusCode != want {
			t.Errorf("impersonation with a token that is %s: %s, want %d", token, resp.Status, want)
		}
	}
}

func TestMetadataServer(t *testing.T) {
	var ahead atomic.Int64
	srv, _ := start(t, emulator.WithMachine("machine@p"), emulator.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	none, _ := start(t)
	const all, email = "https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"
	var last string
	for _, tc := range []struct {
		reason string
		from   *emulator.Server
		after  time.Duration
		flavor string
		scopes []string
		code   int
		kept   bool
	}{
		{"A request without the header is rejected, because a web page could cause it.", srv, 0, "", nil, 403, true},
		{"A machine without an identity has no token.", none, 0, "Google", nil, 404, true},
		{"An unknown scope is rejected.", srv, 0, "Google", []string{"x"}, 400, true},
		{"The first request returns a new token.", srv, 0, "Google", nil, 200, false},
		{"The next request returns the cached token.", srv, 50 * time.Minute, "Google", []string{all}, 200, true},
		{"A request for other scopes returns another token.", srv, 50 * time.Minute, "Google", []string{all, email}, 200, false},
		{"A token that is about to expire is replaced.", srv, 106 * time.Minute, "Google", []string{all, email}, 200, false},
	} {
		ahead.Store(int64(tc.after))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.from.URL()+"/computeMetadata/v1/instance/service-accounts/default/token?scopes="+url.QueryEscape(strings.Join(tc.scopes, ",")), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Metadata-Flavor", tc.flavor)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Token string `json:"access_token"`
		}
		err = json.NewDecoder(resp.Body).Decode(&got)
		_ = resp.Body.Close() // The body has been read.
		kept := got.Token == last || tc.code != 200
		if err != nil || resp.StatusCode != tc.code || (got.Token != "") != (tc.code == 200) || kept != tc.kept {
			t.Errorf("%s\n%s, %v, a token: %t, kept: %t, want %d, %t", tc.reason, resp.Status, err, got.Token != "", kept, tc.code, tc.kept)
		}
		if got.Token == "" {
			continue
		}
		last = got.Token
		want := tc.scopes
		if want == nil {
			want = []string{all}
		}
		caller, scopes, _, ok := srv.TokenInfo(got.Token)
		if diff := cmp.Diff(want, scopes); diff != "" || caller != "machine@p" || !ok {
			t.Errorf("%s\nof %q, known: %t, scopes: -want, +got:\n%s", tc.reason, caller, ok, diff)
		}
	}
}
