// Package gcpconfig turns the login settings of the Google Cloud Kinds into an authenticated connection, or
// into a source of access tokens. Its Explain classifies the errors of Google's APIs.
package gcpconfig

import (
	"context"
	"crypto/x509"
	"net/http"
	"regexp"

	"google.golang.org/grpc"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

// A Config holds the settings from which the client of one object is created. It is safe for concurrent use.
type Config struct {
	// Conn is the connection to the service. The first call opens it.
	Conn *grpc.ClientConn

	retries retries
	tokens  *provider.Tokens
	http    *http.Client
}

var (
	projectID = regexp.MustCompile(`^[a-z0-9]([a-z0-9.:-]{0,126}[a-z0-9])?$`)
	location  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
)

// Load returns the Config of an object that uses a service. It reads Secrets through creds, does not call Google, and does not keep
// ctx. It keeps creds only to request ServiceAccount tokens. Nil roots mean the system's trusted certificates.
// Errors are of package provider, and name the field to fix.
func Load(ctx context.Context, service Service, spec *v1alpha1.GCPSpec, creds provider.Credentials, roots *x509.CertPool) (*Config, error) {
	switch {
	case !projectID.MatchString(spec.ProjectID):
		return nil, provider.NewError(provider.Invalid, "spec.projectID: %q is not a valid project id", spec.ProjectID)
	case spec.Location != "" && !location.MatchString(spec.Location):
		return nil, provider.NewError(provider.Invalid, "spec.location: %q is not a location; write it as europe-west3", spec.Location)
	}
	at, err := parseEndpoint(service, spec, creds)
	if err != nil {
		return nil, err
	}
	r, err := provider.RetriesOf(spec.RetrySettings)
	if err != nil {
		return nil, err
	}
	c := &Config{retries: retries{r}, http: newHTTPClient(roots)}
	l, err := newLogin(ctx, poster{client: c.http, retries: c.retries}, spec.Auth, at.logins, []string{scope}, creds)
	if err != nil {
		return nil, err
	}
	if spec.Auth == nil && !at.trusted() {
		return nil, provider.NewError(provider.Invalid, "spec.endpoint: without spec.auth it must be an address of googleapis.com, because the operator's own identity is sent there")
	}
	c.tokens = provider.NewTokens(ctx, l.login)
	if c.Conn, err = dial(at, roots); err != nil {
		return nil, err
	}
	return c, nil
}

// A login gets an access token. Errors that are not of package provider are those of an attempt.
type login interface {
	login(ctx context.Context) (provider.Token, error)
}

// newLogin returns the login for an identity and scopes.
func newLogin(ctx context.Context, p poster, auth *v1alpha1.GCPAuth, at logins, scopes []string, creds provider.Credentials) (login, error) {
	switch {
	case auth == nil:
		if err := creds.Ambient(); err != nil {
			return nil, provider.Field("spec.auth", err)
		}
		return ambient{client: p.client, scopes: scopes}, nil
	case (auth.SecretRef != nil) == (auth.WorkloadIdentity != nil):
		return nil, provider.NewError(provider.Invalid, "spec.auth: set either secretRef or workloadIdentity")
	case auth.SecretRef != nil:
		raw, err := creds.SecretValue(ctx, auth.SecretRef.SecretAccessKeySecretRef)
		if err != nil {
			return nil, provider.Field(keyField, err)
		}
		k, err := parseKey(raw, at)
		if err != nil {
			return nil, err
		}
		return keyLogin{poster: p, key: k, scopes: scopes}, nil
	}
	return newWorkloadLogin(ctx, p, auth.WorkloadIdentity, at, scopes, creds)
}

// Close closes the connection, and cancels a login in progress.
func (c *Config) Close() error {
	c.tokens.Close()
	c.http.CloseIdleConnections()
	return c.Conn.Close()
}
