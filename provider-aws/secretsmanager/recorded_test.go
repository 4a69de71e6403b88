package secretsmanager

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestRecorded(t *testing.T) {
	refs := map[string]provider.Ref{
		"invalid name":    {Key: "a name"},
		"no such version": {Key: "shop/db", Version: "00000000-0000-4000-8000-000000000000"},
	}
	call := func(t *testing.T, endpoint string, f conformance.Fact) error {
		c, err := connectTo(t, endpoint)
		if err != nil {
			t.Fatal(err)
		}
		ref, ok := refs[f.State]
		if !ok {
			ref.Key = "shop/db"
		}
		switch f.Operation {
		case "GetSecretValue":
			_, err = c.Get(t.Context(), ref)
		case "DescribeSecret":
			_, err = c.Observe(t.Context(), provider.Target{Key: ref.Key})
		case "CreateSecret":
			_, err = c.Create(t.Context(), provider.Target{Key: ref.Key}, []byte("v"), ours)
		default:
			t.Fatalf("operation %s", f.Operation)
		}
		return err
	}
	awstest.RunFacts(t, call, func(t *testing.T, srv *emulator.Server, state string) {
		switch state {
		case "no value":
			in := &secretsmanager.CreateSecretInput{Name: aws.String("shop/db")}
			if _, err := sdk(client(t, srv).config).CreateSecret(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		case "no such version", "exists":
			srv.Put("shop/db", []byte("v"))
		case "marked for deletion":
			srv.Put("shop/db", []byte("v"))
			c := client(t, srv)
			if err := c.Delete(t.Context(), provider.Target{Key: "shop/db"}, observedAt(t, c, "shop/db")); err != nil {
				t.Fatal(err)
			}
		case "KMS key denied":
			srv.Inject(emulator.Fault{Code: "AccessDeniedException", Message: "Access to KMS is not allowed"})
		}
	}, "no such secret", "no value", "no such version", "marked for deletion")
}

func observedAt(t *testing.T, c *Client, key string) provider.Observed {
	t.Helper()
	seen, err := c.Observe(t.Context(), provider.Target{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// TestLoginCodes makes a login fail with codes of Secrets Manager: no secret is missing.
func TestLoginCodes(t *testing.T) {
	for name, fault := range map[string]emulator.Fault{
		"Missing": {Code: "ResourceNotFoundException"},
		"Deleted": {Code: invalidRequest, Message: "it was marked for deletion"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			fault.Call = "AssumeRole"
			srv.Inject(fault)
			t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL())
			if _, err := client(t, srv, awstest.WithRole("arn:aws:iam::000000000000:role/shop")).Get(t.Context(), provider.Ref{Key: "shop/db"}); err == nil || provider.IsNotFound(err) {
				t.Errorf("Get(...): %v, class %q", err, provider.ClassOf(err))
			}
		})
	}
}
