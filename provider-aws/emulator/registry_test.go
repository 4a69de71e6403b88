package emulator_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecrpublic"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// registryLogin is a login without its password.
type registryLogin struct {
	User, Endpoint string
	Lasts          time.Duration
}

func loginOf(t *testing.T, clk *clock, token *string, expires *time.Time, endpoint *string) (l registryLogin, password string) {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(aws.ToString(token))
	if err != nil {
		t.Fatal(err)
	}
	l.User, password, _ = strings.Cut(string(text), ":")
	l.Endpoint, l.Lasts = aws.ToString(endpoint), aws.ToTime(expires).Sub(clk.now())
	return l, password
}

// TestRegistryLogins calls the registries with the SDK's own clients.
func TestRegistryLogins(t *testing.T) {
	t.Parallel()
	clk := &clock{}
	srv := start(t, emulator.WithClock(clk.now), emulator.WithAccount("111122223333"), emulator.WithRegion("us-east-1"))
	cfg := awsConfig(t, srv, static("test", "test", ""))
	passwords := map[string]bool{}

	for range 2 {
		out, err := ecr.NewFromConfig(cfg).GetAuthorizationToken(t.Context(), &ecr.GetAuthorizationTokenInput{})
		if err != nil {
			t.Fatal(err)
		}
		var all []registryLogin
		for _, d := range out.AuthorizationData {
			l, password := loginOf(t, clk, d.AuthorizationToken, d.ExpiresAt, d.ProxyEndpoint)
			all = append(all, l)
			passwords[password] = true
		}
		if diff := cmp.Diff([]registryLogin{{"AWS", "https://111122223333.dkr.ecr.us-east-1.amazonaws.com", 12 * time.Hour}}, all); diff != "" {
			t.Errorf("a login of the account's registry: -want, +got:\n%s", diff)
		}

		public, err := ecrpublic.NewFromConfig(cfg).GetAuthorizationToken(t.Context(), &ecrpublic.GetAuthorizationTokenInput{})
		if err != nil {
			t.Fatal(err)
		}
		l, password := loginOf(t, clk, public.AuthorizationData.AuthorizationToken, public.AuthorizationData.ExpiresAt, nil)
		passwords[password] = true
		if diff := cmp.Diff(registryLogin{"AWS", "", 12 * time.Hour}, l); diff != "" {
			t.Errorf("a login of the public registry: -want, +got:\n%s", diff)
		}
	}
	if len(passwords) != 4 {
		t.Errorf("each call must return a new password: got %d of 4", len(passwords))
	}
	services := map[string]int{}
	for _, c := range srv.Calls() {
		services[c.Service+":"+c.Operation]++
	}
	if diff := cmp.Diff(map[string]int{"ecr:GetAuthorizationToken": 2, "ecr-public:GetAuthorizationToken": 2}, services); diff != "" {
		t.Errorf("calls are logged by service: -want, +got:\n%s", diff)
	}
}

func TestRegistryErrors(t *testing.T) {
	private := func(t *testing.T, cfg aws.Config) error {
		_, err := ecr.NewFromConfig(cfg).GetAuthorizationToken(t.Context(), &ecr.GetAuthorizationTokenInput{})
		return err
	}
	public := func(t *testing.T, cfg aws.Config) error {
		_, err := ecrpublic.NewFromConfig(cfg).GetAuthorizationToken(t.Context(), &ecrpublic.GetAuthorizationTokenInput{})
		return err
	}
	denied := func(action string) string {
		return "AccessDeniedException: User: " + userTest + " is not authorized to perform: " + action + " because no identity-based policy allows the " + action + " action"
	}
	cases := map[string]struct {
		reason string
		call   func(*testing.T, aws.Config) error
		region string
		key    string
		deny   string
		fault  *emulator.Fault
		want   string
	}{
		"Private": {"a missing permission is denied", private, "us-east-1", "test", "ecr:*", nil, denied("ecr:GetAuthorizationToken")},
		"Public":  {"the public registry needs its own permission", public, "us-east-1", "test", "ecr-public:*", nil, denied("ecr-public:GetAuthorizationToken")},
		"Bearer":  {"the public registry also needs a permission for STS", public, "us-east-1", "test", "sts:*", nil, denied("sts:GetServiceBearerToken")},
		"Region":  {"the public registry is in one region only", public, "eu-central-1", "test", "", nil, "InvalidSignatureException: Credential should be scoped to a valid region."},
		"Key":     {"signatures are checked", private, "us-east-1", "other", "", nil, "InvalidSignatureException: " + badSignature},
		"Fault":   {"faults can be injected", private, "us-east-1", "test", "", &emulator.Fault{Call: "GetAuthorizationToken", Code: "ServerException", Status: 500, Message: "m"}, "ServerException: m"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, emulator.WithCredentials(emulator.Credential{AccessKeyID: "test", SecretAccessKey: "test", Deny: []emulator.Deny{{Action: tc.deny}}}))
			if tc.fault != nil {
				srv.Inject(*tc.fault)
			}
			cfg := awsConfig(t, srv, static("test", tc.key, ""))
			cfg.Region = tc.region
			if diff := cmp.Diff(tc.want, apiError(tc.call(t, cfg))); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
