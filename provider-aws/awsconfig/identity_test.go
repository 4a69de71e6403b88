package awsconfig_test

import (
	"context"
	stderrors "errors"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	shopAccount = "111111111111"
	bankAccount = "222222222222"
)

// identified connects a store to an endpoint; "" is the default endpoint of AWS.
func identified(t *testing.T, endpoint string, opts ...awstest.Option) *awsconfig.Config {
	t.Helper()
	c, err := awstest.Connect(t, &v1alpha1.AWSSecretsManager{}, func(ctx context.Context, s *v1alpha1.AWSSecretsManager, creds provider.Credentials) (*awsconfig.Config, error) {
		return awsconfig.LoadStore(ctx, s, creds)
	}, endpoint, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestIdentity compares stores with one for a fixed account and region. STS returns the account.
func TestIdentity(t *testing.T) {
	const role = "arn:aws:iam::" + shopAccount + ":role/shop"
	shop := awstest.Start(t, emulator.WithAccount(shopAccount), emulator.WithRoles(emulator.Role{ARN: role, Principals: []string{"arn:aws:iam::" + shopAccount + ":user/test"}}))
	bank := awstest.Start(t, emulator.WithAccount(bankAccount))
	of := func(sts *emulator.Server, service, endpoint string, opts ...awstest.Option) provider.Identity {
		t.Helper()
		t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL())
		c := identified(t, endpoint, opts...)
		is, err := c.Identity(t.Context(), service)
		if err != nil {
			t.Fatal(err)
		}
		before := sts.Count("GetCallerIdentity")
		if again, err := c.Identity(t.Context(), service); err != nil || again != is || sts.Count("GetCallerIdentity") != before {
			t.Errorf("asked again: %+v, error %v, %d calls more", again, err, sts.Count("GetCallerIdentity")-before)
		}
		return is
	}
	here := of(shop, "ssm", "")
	cases := map[string]struct {
		reason string
		got    provider.Identity
		want   bool
	}{
		"Login":    {"Different credentials of one account have the same identity.", of(shop, "ssm", "", awstest.WithRole(role)), true},
		"Account":  {"Another account has another identity.", of(bank, "ssm", ""), false},
		"Region":   {"Another region has another identity.", of(shop, "ssm", "", awstest.WithRegion("eu-central-1")), false},
		"Service":  {"Another service has another identity.", of(shop, "secretsmanager", ""), false},
		"Endpoint": {"A custom endpoint has another identity, even with the same account.", of(shop, "ssm", "https://ssm.example"), false},
		"Prefix":   {"Another prefix has another identity.", of(shop, "ssm", "", awstest.WithPrefix("/shop/")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if (tc.got == here) != tc.want {
				t.Errorf("%s\nalike: %t, want %t: -base, +got:\n%s", tc.reason, !tc.want, tc.want, cmp.Diff(here, tc.got))
			}
		})
	}
	if !here.Overlaps(cases["Prefix"].got) {
		t.Error("a store with a prefix does not share the secrets of one without")
	}
}

// TestIdentityUnknown covers stores whose account cannot be determined.
func TestIdentityUnknown(t *testing.T) {
	srv := awstest.Start(t)
	if _, err := identified(t, srv.URL()).Identity(t.Context(), "ssm"); !errors.Is(err, stderrors.ErrUnsupported) {
		t.Errorf("AWS must not be asked for the account behind a custom endpoint: %v", err)
	}
	t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL())
	if _, err := identified(t, "", awstest.WithKey("wrong", "wrong")).Identity(t.Context(), "ssm"); provider.ClassOf(err) != provider.Denied {
		t.Errorf("an account is returned without a valid login: %v", err)
	}
	defer srv.Inject(emulator.Fault{Call: "GetCallerIdentity", Hang: true})()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := identified(t, "").Identity(ctx, "ssm"); provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("an account is returned without an answer of STS: %v", err)
	}
}
