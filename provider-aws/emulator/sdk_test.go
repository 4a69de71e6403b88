package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// token returns a token that is long enough for a ClientRequestToken.
func token(n int) *string { return aws.String(fmt.Sprintf("token-%026d", n)) }

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

func static(key, secret, session string) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(key, secret, session)
}

// awsConfig returns the configuration of a program under test, without retries, so that a test sees every
// answer.
func awsConfig(t testing.TB, srv *emulator.Server, p aws.CredentialsProvider) aws.Config {
	t.Helper()
	cfg, err := config.LoadDefaultConfig(t.Context(),
		config.WithRegion("us-east-1"),
		config.WithBaseEndpoint(srv.URL()),
		config.WithCredentialsProvider(p),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithSharedConfigFiles(nil),
		config.WithSharedCredentialsFiles(nil),
	)
	if err != nil {
		t.Fatalf("LoadDefaultConfig: %v", err)
	}
	return cfg
}

func secretsClient(t testing.TB, srv *emulator.Server) *secretsmanager.Client {
	t.Helper()
	return secretsmanager.NewFromConfig(awsConfig(t, srv, static("test", "test", "")))
}

func stsClient(t testing.TB, srv *emulator.Server) *sts.Client {
	t.Helper()
	return sts.NewFromConfig(awsConfig(t, srv, static("test", "test", "")))
}

// apiError returns "Code: Message" for an API error, "" for nil, and the text of any other error.
func apiError(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode() + ": " + api.ErrorMessage()
	default:
		return err.Error()
	}
}

// current reads a secret and returns one line: its text or binary value, or the error code and message.
func current(ctx context.Context, c *secretsmanager.Client, id string) string {
	return read(ctx, c, &secretsmanager.GetSecretValueInput{SecretId: &id})
}

func read(ctx context.Context, c *secretsmanager.Client, in *secretsmanager.GetSecretValueInput) string {
	out, err := c.GetSecretValue(ctx, in)
	if err != nil {
		return apiError(err)
	}
	if out.SecretString == nil {
		return fmt.Sprintf("binary %x", out.SecretBinary)
	}
	return *out.SecretString
}
