package emulator_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	roleA, roleB = "arn:aws:iam::111111111111:role/a", "arn:aws:iam::222222222222:role/path/b"
	userTest     = "arn:aws:iam::000000000000:user/test"
	sts          = "sts" // the target of calls to STS, which name the operation in their form
)

// version is the ID of a version.
func version(n int) string { return fmt.Sprintf("version-%024d", n) }

func start(t testing.TB, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return srv
}

// A step is a call and a part of its answer: "STATUS BODY". Its zero fields make it a call of the user test at this moment.
type step struct {
	call, body string
	want       string

	path, service, region string
	key                   aws.Credentials
	before                time.Duration       // how long ago it was signed
	change                func(*http.Request) // changes the signed request
}

// ask sends the call.
func (s step) ask(t *testing.T, srv *emulator.Server) string {
	t.Helper()
	prefix, operation, _ := strings.Cut(s.call, ".")
	target := map[string]string{"secretsmanager": "secretsmanager.", "ssm": "AmazonSSM.", "ecr-public": "SpencerFrontendService."}[prefix]
	body := s.body
	for n := 1; n < 10; n++ {
		body = strings.ReplaceAll(body, fmt.Sprintf("$%d", n), version(n))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+cmp.Or(s.path, "/"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if prefix == sts {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
		r.Header.Set("X-Amz-Target", target+operation)
	}
	if s.key.AccessKeyID == "" {
		s.key = aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test", SessionToken: s.key.SessionToken}
	}
	sum := sha256.Sum256([]byte(body))
	at := time.Now().Add(-s.before)
	if err := v4.NewSigner().SignHTTP(t.Context(), s.key, r, hex.EncodeToString(sum[:]), cmp.Or(s.service, prefix), cmp.Or(s.region, "us-east-1"), at); err != nil {
		t.Fatal(err)
	}
	if s.change != nil {
		s.change(r)
	}
	return answer(t, r)
}

func answer(t *testing.T, r *http.Request) string {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(res.Status[:3] + " " + string(b))
}

// run makes the calls in order.
func run(t *testing.T, srv *emulator.Server, steps []step) {
	t.Helper()
	for _, s := range steps {
		if got := s.ask(t, srv); !strings.Contains(got, s.want) {
			t.Errorf("%s %s: got %s, want …%s…", s.call, s.body, got, s.want)
		}
	}
}
