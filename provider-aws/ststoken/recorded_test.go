package ststoken

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
)

// TestRecorded generates access keys. Each answer of STS is about a login: none is NotFound.
func TestRecorded(t *testing.T) {
	mfa := v1alpha1.STSRequestParameters{SerialNumber: device, TokenCode: "000000"}
	asks := map[string]v1alpha1.STSRequestParameters{"wrong code": mfa, "longer than the role allows": {SessionDuration: 10800}}
	conformance.RunFacts(t, conformance.FactHarness{
		Seen: awstest.SeenIn,
		Prepare: func(t *testing.T, f conformance.Fact) string {
			srv := start(t)
			if _, ok := asks[f.State]; !ok && f.Differs == "" {
				srv.Inject(awstest.FaultOf(f))
			}
			return srv.URL()
		},
		Call: func(t *testing.T, endpoint string, f conformance.Fact) error {
			_, err := client(t, asking(asks[f.State]), endpoint, func(s *awstest.Store) {
				if f.Operation == "AssumeRole" {
					s.Role = roles + "deploy"
				}
			}).Generate(t.Context())
			return err
		},
	})
}
