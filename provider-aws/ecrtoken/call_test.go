package ecrtoken

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecrpublic"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// sent is what of a request is the same each time.
type sent struct {
	Method, URI, Body   string
	Header              map[string]string
	Signed, Scope, From string
}

var (
	signature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=test/\d+/([^,]+), SignedHeaders=([^,]+), Signature=`)
	// agent is what says who calls: the SDK's version, the service and the operator. The rest of the header
	// says what of the SDK is in use.
	agent = regexp.MustCompile(`aws-sdk-go-v2/[\d.]+|api/[a-z-]+|app/[a-z-]+`)
)

// listen returns a server that writes down what it is sent.
func listen(t *testing.T) (url string, last func() sent) {
	t.Helper()
	var got sent
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = sent{Method: r.Method, URI: r.RequestURI, Body: string(body), Header: map[string]string{}}
		if m := signature.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
			got.Scope, got.Signed = m[1], m[2]
		}
		got.From = strings.Join(agent.FindAllString(r.UserAgent(), -1), " ")
		for name := range r.Header {
			if !slices.Contains([]string{"Authorization", "User-Agent", "X-Amz-Date", "Amz-Sdk-Invocation-Id"}, name) {
				got.Header[name] = r.Header.Get(name)
			}
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() sent { return got }
}

// TestLikeTheSDK compares what is sent with what the SDK's own clients send.
func TestLikeTheSDK(t *testing.T) {
	cases := map[v1alpha1.ECRScope]func(context.Context, aws.Config) error{
		v1alpha1.ECRPrivate: func(ctx context.Context, cfg aws.Config) error {
			_, err := ecr.NewFromConfig(cfg).GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
			return err
		},
		v1alpha1.ECRPublic: func(ctx context.Context, cfg aws.Config) error {
			cfg.Region = "us-east-1"
			_, err := ecrpublic.NewFromConfig(cfg).GetAuthorizationToken(ctx, &ecrpublic.GetAuthorizationTokenInput{})
			return err
		},
	}
	for scope, call := range cases {
		t.Run(string(scope), func(t *testing.T) {
			url, last := listen(t)
			c := client(t, scope, url)
			cfg := c.config.AWS
			cfg.BaseEndpoint, cfg.Credentials = aws.String(url), credentials.NewStaticCredentialsProvider("test", "test", "")
			if err := call(t.Context(), cfg); err == nil {
				t.Fatal("a teapot gives logins")
			}
			want := last()
			if _, err := c.Generate(t.Context()); err == nil {
				t.Fatal("a teapot gives logins")
			}
			if diff := cmp.Diff(want, last()); diff != "" || want.Scope == "" || want.Body == "" {
				t.Errorf("Generate(...) sends: -want, +got:\n%s", diff)
			}
		})
	}
}
