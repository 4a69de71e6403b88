package parameterstore

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// TestRecorded holds the client against facts. A missing KMS key is not a missing parameter, although its text says "does not exist".
func TestRecorded(t *testing.T) {
	faults := map[string]emulator.Fault{}
	for _, f := range conformance.Facts(t, "recorded.json") { // The emulator has no KMS: its faults stand for it.
		faults[f.State] = awstest.FaultOf(f)
	}
	call := func(t *testing.T, endpoint string, _ conformance.Fact) error {
		c, err := connectTo(t, endpoint)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Get(t.Context(), provider.Ref{Key: "/a"})
		return err
	}
	awstest.RunFacts(t, call, func(_ *testing.T, srv *emulator.Server, state string) { srv.Inject(faults[state]) })
}
