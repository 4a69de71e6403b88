package awsconfig_test

import (
	"context"
	"testing"
	"time"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	account  = "arn:aws:iam::000000000000:"
	issuer   = "https://oidc.example"
	identity = "system:serviceaccount:shop:shop"
)

// A caller is a provider.Credentials with tokens of a ServiceAccount.
type caller struct {
	provider.Credentials

	subject string
	expires time.Time
}

// ServiceAccountToken implements provider.Credentials.
func (c caller) ServiceAccountToken(_ context.Context, _ common.ServiceAccountSelector, audiences ...string) (string, error) {
	return fake.NewToken(issuer, c.subject, audiences[0], c.expires), nil
}

// states are what of a store and of its caller makes an emulator answer as recorded. The emulator has faults for the other states.
var states = map[string]func(*awstest.Store, *caller){
	"role without a service":  func(s *awstest.Store, _ *caller) { s.Role = "arn:aws::::role/shop" },
	"role without a resource": func(s *awstest.Store, _ *caller) { s.Role = account },
	"transitive tag that is not listed": func(s *awstest.Store, _ *caller) {
		s.SessionTags, s.TransitiveTagKeys = []v1alpha1.SessionTag{{Key: "team", Value: "shop"}}, []string{"other"}
	},
	"two tags that differ in case": func(s *awstest.Store, _ *caller) {
		s.SessionTags = []v1alpha1.SessionTag{{Key: "team", Value: "shop"}, {Key: "Team", Value: "shop"}}
	},
	"no such role, or denied": func(s *awstest.Store, _ *caller) { s.Role = account + "role/absent" },
	"denied":                  func(_ *awstest.Store, c *caller) { c.subject = "other" },
	"wrong audience": func(s *awstest.Store, _ *caller) {
		if s.Auth.ServiceAccountRef != nil {
			s.Auth.ServiceAccountRef.Audiences = []string{"other"}
		}
	},
	"expired token":      func(_ *awstest.Store, c *caller) { c.expires = time.Unix(1, 0) },
	"unknown access key": func(s *awstest.Store, _ *caller) { s.Secrets["id"] = "other" },
	"page of a proxy":    func(*awstest.Store, *caller) {},
}

// TestRecorded logs in. The service of the store has an error for a missing secret, which no answer of STS is.
func TestRecorded(t *testing.T) {
	conformance.RunFacts(t, conformance.FactHarness{
		Seen: awstest.SeenIn,
		Prepare: func(t *testing.T, f conformance.Fact) string {
			srv := awstest.Start(t, emulator.WithRoles(emulator.Role{
				ARN: account + "role/shop", Principals: []string{account + "user/test"},
				WebIdentities: []emulator.WebIdentity{{Issuer: issuer, Subject: identity, Audience: "sts.amazonaws.com"}},
			}))
			if states[f.State] == nil {
				srv.Inject(awstest.FaultOf(f))
			}
			return srv.URL()
		},
		Call: func(t *testing.T, endpoint string, f conformance.Fact) error {
			t.Setenv("AWS_ENDPOINT_URL_STS", endpoint)
			own := caller{subject: identity, expires: time.Now().Add(time.Hour)}
			c, err := awstest.Connect(t, &v1alpha1.AWSSecretsManager{}, func(ctx context.Context, s *v1alpha1.AWSSecretsManager, creds provider.Credentials) (*awsconfig.Config, error) {
				own.Credentials = creds
				return awsconfig.LoadStore(ctx, s, own)
			}, endpoint, func(s *awstest.Store) {
				switch f.Operation {
				case "AssumeRole":
					s.Role = account + "role/shop"
				case "AssumeRoleWithWebIdentity":
					s.Role, s.Auth = account+"role/shop", &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Name: "shop"}}
				}
				if change := states[f.State]; change != nil {
					change(s, &own)
				}
				if s.Role == "" || s.Auth.ServiceAccountRef != nil { // Only a call of AssumeRole has the tags of the spec.
					s.SessionTags, s.TransitiveTagKeys = nil, nil
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if f.Operation == "GetCallerIdentity" {
				_, err = c.Identity(t.Context(), "a service")
				return err
			}
			if _, err = c.AWS.Credentials.Retrieve(t.Context()); err == nil {
				return nil
			}
			return c.Explain(err, "the secret", awsconfig.Codes{"ResourceNotFoundException": {Class: provider.NotFound, Text: "does not exist"}})
		},
	})
}
