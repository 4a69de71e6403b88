// Package azureconfig turns the login settings of the Azure Kinds into the options of Azure's clients, for a vault or a container
// registry. Its Explain classifies the errors of Key Vault.
package azureconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
)

// attemptTimeout limits one request, so that a retry is possible after a hanging one.
const attemptTimeout = 15 * time.Second

// Network is how an operator reaches Azure. Its zero value is ready for use.
type Network struct {
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// Wrap changes the transport of all requests, if it is set. Tests set it to stand in for Azure's hosts.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// A Config holds the settings from which the client of one object is created. It is safe for concurrent use. It is the credential of
// that client.
type Config struct {
	// URL is the address for the SDK. Its scheme is https, also for an emulator without TLS.
	URL string
	// Place identifies the vault.
	Place string
	// Host is the host of URL, and its port if the spec has one.
	Host string
	// Options are those of the SDK's client.
	Options azcore.ClientOptions
	// Emulated reports whether the vault is on the operator's own host, so that its domain proves nothing.
	Emulated bool

	place  place
	tenant provider.Setting
	tokens *provider.Tokens
	idle   func()
}

// Load returns the Config of a vault. It reads Secrets through creds, does not call Azure, and does not keep ctx. It keeps creds only
// to request ServiceAccount tokens. Errors are of package provider, and name the field to fix.
func (n Network) Load(ctx context.Context, spec *v1alpha1.AzureSpec, creds provider.Credentials) (*Config, error) {
	at, err := vaultOf(spec, creds)
	if err != nil {
		return nil, err
	}
	c, client, err := n.open(ctx, at, &spec.AzureLogin, spec.RetrySettings, creds, operation)
	if err != nil {
		return nil, err
	}
	check := func(header string) error { return at.checkChallenge(c.tenant, header) }
	c.Options.Transport = guard{
		client: newChallenges(client, func(header string) bool { return check(header) == nil }), host: at.url.Host, field: at.field, plain: at.url.Scheme == "http",
		inspect: func(r *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusUnauthorized {
				return nil
			}
			if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
				c.Forget(token)
			}
			return check(resp.Header.Get(challengeHeader))
		},
	}
	return c, nil
}

// LoadRegistry returns the Config of a container registry. The rules of Load apply. Its Options have no credential: callers send the
// result of Token to the registry themselves.
func (n Network) LoadRegistry(ctx context.Context, spec *v1alpha1.ACRAccessTokenSpec, creds provider.Credentials) (*Config, error) {
	at, err := registryOf(spec, creds)
	if err != nil {
		return nil, err
	}
	c, client, err := n.open(ctx, at, &spec.AzureLogin, spec.RetrySettings, creds, func(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/oauth2/") })
	if err != nil {
		return nil, err
	}
	c.Options.Transport = guard{client: client, host: at.url.Host, field: at.field, plain: at.url.Scheme == "http"}
	return c, nil
}

// open returns a Config whose options have no transport yet, and the client for calls to its place. operation names them for metrics.
func (n Network) open(ctx context.Context, at place, spec *v1alpha1.AzureLogin, settings *common.RetrySettings, creds provider.Credentials, operation func(*http.Request) string) (*Config, *http.Client, error) {
	retries, err := provider.RetriesOf(settings)
	if err != nil {
		return nil, nil, err
	}
	spec, tenant, err := annotated(ctx, spec, creds)
	if err != nil {
		return nil, nil, err
	}
	transport := provider.NewTransport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: n.RootCAs})
	var wrapped http.RoundTripper = transport
	if n.Wrap != nil {
		wrapped = n.Wrap(wrapped)
	}
	calls := func(operation func(*http.Request) string) *http.Client {
		return provider.NewHTTPClient(wrapped, operation, func(r *http.Request) bool { return operation(r) == "list" })
	}
	options := optionsOf(retries)
	l := login{place: at, tenant: tenant, client: calls(func(*http.Request) string { return "login" }), retries: options.Retry}
	if l.source, err = sourceOf(ctx, spec, at, creds); err != nil {
		return nil, nil, err
	}
	return &Config{
		URL: "https://" + at.url.Host, Place: provider.Address(at.url), Host: at.url.Host, Emulated: at.emulated,
		Options: options, place: at, tenant: tenant, tokens: provider.NewTokens(ctx, l.login), idle: transport.CloseIdleConnections,
	}, calls(operation), nil
}

// optionsOf returns options whose retries are those of the spec.
func optionsOf(r provider.Retries) (o azcore.ClientOptions) {
	o.Telemetry.ApplicationID = "direct-secrets"
	o.PerCallPolicies = []policy.Policy{bareLinks{}}
	o.Retry = policy.RetryOptions{
		MaxRetries: int32(min(r.Max, 100)), RetryDelay: r.Wait(0), MaxRetryDelay: max(r.Interval, time.Millisecond), TryTimeout: attemptTimeout, ShouldRetry: worthRetrying, //nolint:gosec // The number is limited.
	}
	if r.Max <= 0 {
		o.Retry.MaxRetries = -1 // none; 0 is the SDK's default
	}
	return o
}

// worthRetrying reports whether to retry without the caller. If Azure asks to wait, that is up to the caller.
func worthRetrying(resp *http.Response, err error) bool {
	var own *provider.Error
	switch {
	case errors.As(err, &own), provider.CertificateFaultOf(err) != "":
		return false
	case err != nil:
		return true
	case resp.StatusCode == http.StatusTooManyRequests:
		return provider.RetryAfterHeader(resp.Header) == 0
	}
	return resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode >= http.StatusInternalServerError
}

// operation returns the operation of a request for metrics.
func operation(r *http.Request) string {
	if parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); r.Method == http.MethodGet && len(parts) == 1 {
		return "list"
	}
	return map[string]string{http.MethodGet: "get", http.MethodPut: "set", http.MethodPatch: "update", http.MethodDelete: "delete", http.MethodPost: "recover"}[r.Method]
}

// Ready logs in if necessary. A client calls it before each call, because the SDK's own login does not end with every call's context.
func (c *Config) Ready(ctx context.Context) error {
	_, err := c.Token(ctx)
	return err
}

// Token returns a token of the identity in spec.auth, for the resource of the service. Errors are of package provider.
func (c *Config) Token(ctx context.Context) (string, error) { return c.tokens.Get(ctx) }

// Forget drops a token that the service rejects, so that the next call logs in.
func (c *Config) Forget(token string) { c.tokens.Forget(token) }

// GetToken implements azcore.TokenCredential. It accepts only the scope of the environment.
func (c *Config) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if len(o.Scopes) != 1 || o.Scopes[0] != c.place.scope() {
		return azcore.AccessToken{}, provider.NewError(provider.Invalid, "spec.environment: the vault demands tokens for another resource than %s; correct environment or vaultURL", c.place.resource)
	}
	token, err := c.Token(ctx)
	// The SDK keeps a token until shortly before its expiry. Tokens know the real one, so the SDK asks each time.
	return azcore.AccessToken{Token: token, ExpiresOn: time.Now()}, err
}

func (p place) scope() string { return p.resource + "/.default" }

// Tenant is the tenant that logs in; empty if a managed identity does without it.
func (c *Config) Tenant() string { return c.tenant.Text }

// Close releases connections, and cancels a login in progress.
func (c *Config) Close() error {
	c.tokens.Close()
	c.idle()
	return nil
}
