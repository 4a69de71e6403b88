package parameterstore

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestCallsPerSync(t *testing.T) {
	start := func(t testing.TB) operatortest.CallsHarness {
		return awstest.Calls(t, &v1alpha1.AWSParameterStore{}, Connect, func(srv *emulator.Server, key, value string) { srv.PutParameter(key, value) })
	}
	operatortest.CallsPerSync(t, "AWSParameterStore", start, operatortest.Calls{
		One:     map[string]int{"GetParameter": 1},
		Hundred: map[string]int{"GetParameters": 10},
	})
}
