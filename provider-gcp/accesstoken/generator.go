// Package accesstoken generates access tokens of Google Cloud for the generator Kinds GCPAccessToken and
// ClusterGCPAccessToken.
package accesstoken

import (
	"context"
	"crypto/x509"
	"strconv"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/gcpconfig"
)

// These are the keys of the generated values.
const (
	KeyUsername = "username"
	KeyPassword = "password" // the access token
	KeyExpiry   = "expiry"   // when the token expires, in seconds since 1970
)

// username is the user name that Google's registries expect with an access token:
// https://cloud.google.com/artifact-registry/docs/docker/authentication#token
const username = "oauth2accesstoken"

// A Provider creates clients. Its zero value is ready for use.
type Provider struct {
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
}

// Kinds returns the generator Kinds that the Provider serves.
func (p Provider) Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(p.Connect).ReadOnly(),
		provider.ClusterGeneratorKindOf(p.ConnectCluster).ReadOnly(),
	}
}

// Connect returns the Generator of an object. It does not call Google.
func (p Provider) Connect(ctx context.Context, g *v1alpha1.GCPAccessToken, creds provider.Credentials) (provider.Generator, error) {
	return p.connect(ctx, &g.Spec, creds)
}

// ConnectCluster returns the Generator of an object. It does not call Google.
func (p Provider) ConnectCluster(ctx context.Context, g *v1alpha1.ClusterGCPAccessToken, creds provider.Credentials) (provider.Generator, error) {
	return p.connect(ctx, &g.Spec.GCPAccessTokenSpec, creds)
}

func (p Provider) connect(ctx context.Context, spec *v1alpha1.GCPAccessTokenSpec, creds provider.Credentials) (provider.Generator, error) {
	s, err := gcpconfig.LoadSource(ctx, spec, creds, p.RootCAs)
	if err != nil {
		return nil, err
	}
	return &Generator{source: s}, nil
}

// A Generator generates access tokens of one identity. It is neither a provider.Renewer nor a provider.Cleaner:
// Google does not extend access tokens, and does not revoke those of a service account.
type Generator struct {
	source *gcpconfig.Source
}

var (
	_ provider.Generator = &Generator{}
	_ provider.Checker   = &Generator{}
)

// Generate generates an access token.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	token, expires, err := g.source.Token(ctx)
	if err != nil {
		return provider.Generated{}, err
	}
	return provider.Generated{
		Values: map[string][]byte{
			KeyUsername: []byte(username),
			KeyPassword: []byte(token),
			KeyExpiry:   strconv.AppendInt(nil, expires.Unix(), 10),
		},
		Expires: expires,
	}, nil
}

// Check logs in and discards the token, because there is no cheaper proof that the next login works. A cached
// token would only prove that the last one worked.
func (g *Generator) Check(ctx context.Context) error {
	_, _, err := g.source.Token(ctx)
	return err
}

// Close cancels a login in progress.
func (g *Generator) Close() error { return g.source.Close() }
