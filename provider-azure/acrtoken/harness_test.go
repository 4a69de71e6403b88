package acrtoken

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

const (
	reader = "reader"
	// canary is in texts that no message contains.
	canary = "c4n4ry"
)

// creds are Credentials with one client secret, and without the operator's own identity.
type creds struct {
	provider.Credentials
	secret string
}

func (c creds) SecretValue(context.Context, common.SecretKeySelector) ([]byte, error) {
	return []byte(c.secret), nil
}

// start starts an emulator, in which reader can log in with the secret canary.
func start(t *testing.T, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // The test does not depend on a clean stop.
	srv.SetApp(reader, emulator.App{Secrets: []string{canary}})
	return srv
}

// specOf returns the spec of a generator for the registry of an emulator.
func specOf(srv *emulator.Server, change ...func(*v1alpha1.ACRAccessTokenSpec)) v1alpha1.ACRAccessTokenSpec {
	one := int32(1)
	s := v1alpha1.ACRAccessTokenSpec{
		RetrySpec: common.RetrySpec{RetrySettings: &common.RetrySettings{MaxRetries: &one, RetryInterval: "1ms"}},
		Registry:  srv.Address(),
		AzureLogin: v1alpha1.AzureLogin{TenantID: emulator.DefaultTenant, Auth: v1alpha1.AzureAuth{ClientSecret: &v1alpha1.ClientSecret{
			Client: v1alpha1.Client{ClientID: reader}, ClientSecretRef: common.SecretKeySelector{Name: "azure", Key: "secret"},
		}}},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

func scope(text string) func(*v1alpha1.ACRAccessTokenSpec) {
	return func(s *v1alpha1.ACRAccessTokenSpec) { s.Scope = text }
}

// connect returns the generator of a spec.
func connect(t *testing.T, n azureconfig.Network, s v1alpha1.ACRAccessTokenSpec) *Generator {
	t.Helper()
	g, err := Provider{Network: n}.Connect(t.Context(), &v1alpha1.ACRAccessToken{Spec: s}, creds{secret: canary})
	if err != nil {
		t.Fatal(err)
	}
	c := g.(*Generator)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// A transport is an http.RoundTripper.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering returns a Network in which the registry gives one answer to each request, but logins reach their server.
func answering(status int, body string) azureconfig.Network {
	return azureconfig.Network{Wrap: func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if !strings.HasPrefix(r.URL.Path, "/oauth2/") {
				return next.RoundTrip(r)
			}
			return &http.Response{
				StatusCode: status, Header: http.Header{"Location": {"https://evil.example/" + canary}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}, nil
		})
	}}
}

// soon returns a context with a deadline, for calls that must not hang.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
