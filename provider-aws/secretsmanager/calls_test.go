package secretsmanager

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/fetch/fetchtest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestCallsPerSync(t *testing.T) {
	start := func(t testing.TB) fetchtest.Harness {
		return awstest.Calls(t, &v1alpha1.AWSSecretsManager{}, Connect, func(srv *emulator.Server, key, value string) { srv.Put(key, []byte(value)) })
	}
	fetchtest.CallsPerSync(t, "AWSSecretsManager", start, fetchtest.Calls{
		One:     map[string]int{"GetSecretValue": 1},
		Hundred: map[string]int{"BatchGetSecretValue": 5},
	})
}
