// Package accesstoken makes access tokens of Google Cloud for the generator Kinds GCPAccessToken and
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

// The keys of what is made.
const (
	KeyUsername = "username"
	KeyPassword = "password" // the access token
	KeyExpiry   = "expiry"   // when it ends, in seconds since 1970
)

// username is the one that Google's registries want with an access token:
// https://cloud.google.com/artifact-registry/docs/docker/authentication#token
const username = "oauth2accesstoken"

// A Provider makes clients. Its zero value is ready for use.
type Provider struct {
	// RootCAs are the certificate authorities that are trusted, instead of the system's.
	RootCAs *x509.CertPool
}

// What the loops of common ask for, for these Kinds: a generator is read live before it makes other values.
// +kubebuilder:rbac:groups=gcp.direct-secrets.io,resources=gcpaccesstokens,verbs=get;list;watch
// +kubebuilder:rbac:groups=gcp.direct-secrets.io,resources=gcpaccesstokens/status,verbs=patch
// +kubebuilder:rbac:groups=gcp.direct-secrets.io,resources=clustergcpaccesstokens,verbs=get;list;watch,roleName=cluster
// +kubebuilder:rbac:groups=gcp.direct-secrets.io,resources=clustergcpaccesstokens/status,verbs=patch,roleName=cluster

// Kinds returns the generator Kinds that the Provider serves.
func (p Provider) Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(p.Connect),
		provider.ClusterGeneratorKindOf(p.ConnectCluster),
	}
}

// Connect returns the Generator of an object. Google is not called.
func (p Provider) Connect(ctx context.Context, g *v1alpha1.GCPAccessToken, creds provider.Credentials) (provider.Generator, error) {
	return p.connect(ctx, &g.Spec, creds)
}

// ConnectCluster returns the Generator of an object. Google is not called.
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

// A Generator makes access tokens of one identity. It is neither a provider.Renewer nor a provider.Cleaner: Google
// prolongs no access token, and revokes none of a service account.
type Generator struct {
	source *gcpconfig.Source
}

var (
	_ provider.Generator = &Generator{}
	_ provider.Checker   = &Generator{}
)

// Generate makes an access token.
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

// Check logs in and drops the token: there is no cheaper proof that the next login works. A token that was
// kept would prove it of the last one only.
func (g *Generator) Check(ctx context.Context) error {
	_, _, err := g.source.Token(ctx)
	return err
}

// Close gives up a login that is under way.
func (g *Generator) Close() error { return g.source.Close() }
