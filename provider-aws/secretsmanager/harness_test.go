package secretsmanager

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func connectTo(t testing.TB, endpoint string, opts ...awstest.Option) (*Client, error) {
	c, err := awstest.Connect(t, &v1alpha1.AWSSecretsManager{}, Connect, endpoint, opts...)
	if err != nil {
		return nil, err
	}
	return c.(*Client), nil
}

func client(t testing.TB, srv *emulator.Server, opts ...awstest.Option) *Client {
	t.Helper()
	c, err := connectTo(t, srv.URL(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
