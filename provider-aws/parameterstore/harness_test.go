package parameterstore

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func connectTo(t testing.TB, endpoint string, opts ...awstest.Option) (provider.Client, error) {
	return awstest.Connect(t, &v1alpha1.AWSParameterStore{}, Connect, endpoint, opts...)
}

func client(t testing.TB, srv *emulator.Server, opts ...awstest.Option) *Client {
	t.Helper()
	c, err := connectTo(t, srv.URL(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Client)
}
