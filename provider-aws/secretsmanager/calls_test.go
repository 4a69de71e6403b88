package secretsmanager

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestCallsPerSync(t *testing.T) {
	start := func(t testing.TB) operatortest.CallsHarness {
		return awstest.Calls(t, &v1alpha1.AWSSecretsManager{}, Connect, func(srv *emulator.Server, key, value string) { srv.Put(key, []byte(value)) })
	}
	operatortest.CallsPerSync(t, "AWSSecretsManager", start, operatortest.Calls{
		One:     map[string]int{"GetSecretValue": 1},
		Hundred: map[string]int{"BatchGetSecretValue": 5},
	})
}
