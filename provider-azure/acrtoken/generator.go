// Package acrtoken generates tokens of Azure Container Registry for the generator Kinds ACRAccessToken and ClusterACRAccessToken.
package acrtoken

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/containers/azcontainerregistry"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/golang-jwt/jwt/v5"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
)

// These are the keys of the generated values.
const (
	KeyUsername = "username"
	KeyPassword = "password"   // the token
	KeyExpires  = "expires_at" // when the token expires, in seconds since 1970
)

// username is the user name that the registry expects with a token:
// https://learn.microsoft.com/azure/container-registry/container-registry-authentication.
const username = "00000000-0000-0000-0000-000000000000"

// A Provider creates generators. Its zero value is ready for use.
type Provider struct {
	Network azureconfig.Network
}

// Kinds returns the generator Kinds that the Provider serves.
func (p Provider) Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(p.Connect).ReadOnly(),
		provider.ClusterGeneratorKindOf(p.ConnectCluster).ReadOnly(),
	}
}

// Connect returns the Generator of an object. It does not call Azure.
func (p Provider) Connect(ctx context.Context, g *v1alpha1.ACRAccessToken, creds provider.Credentials) (provider.Generator, error) {
	return p.connect(ctx, &g.Spec, creds)
}

// ConnectCluster returns the Generator of an object. It does not call Azure.
func (p Provider) ConnectCluster(ctx context.Context, g *v1alpha1.ClusterACRAccessToken, creds provider.Credentials) (provider.Generator, error) {
	return p.connect(ctx, &g.Spec.ACRAccessTokenSpec, creds)
}

func (p Provider) connect(ctx context.Context, spec *v1alpha1.ACRAccessTokenSpec, creds provider.Credentials) (provider.Generator, error) {
	c, err := p.Network.LoadRegistry(ctx, spec, creds)
	if err != nil {
		return nil, err
	}
	api, err := azcontainerregistry.NewAuthenticationClient(c.URL, &azcontainerregistry.AuthenticationClientOptions{ClientOptions: c.Options})
	if err != nil {
		return nil, provider.NewError(provider.Invalid, registryField+": Azure's library does not accept it; write it as NAME.azurecr.io")
	}
	return &Generator{config: c, api: api, scope: spec.Scope}, nil
}

// A Generator generates tokens of one identity for one registry. It is neither a provider.Renewer nor a provider.Cleaner: the registry
// does not extend tokens, and does not revoke them.
type Generator struct {
	config *azureconfig.Config
	api    *azcontainerregistry.AuthenticationClient
	scope  string
}

var (
	_ provider.Generator = &Generator{}
	_ provider.Checker   = &Generator{}
)

// Generate generates a token: a refresh token of the registry, or an access token if the spec has a scope.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	token, err := g.refreshToken(ctx)
	if err != nil {
		return provider.Generated{}, err
	}
	if g.scope != "" {
		if token, err = g.accessToken(ctx, token); err != nil {
			return provider.Generated{}, err
		}
	}
	expires, err := expiryOf(token)
	if err != nil {
		return provider.Generated{}, err
	}
	return provider.Generated{Expires: expires, Values: map[string][]byte{
		KeyUsername: []byte(username),
		KeyPassword: []byte(token),
		KeyExpires:  strconv.AppendInt(nil, expires.Unix(), 10),
	}}, nil
}

// Check generates a token and discards it, because the registry has no cheaper call that proves the login. It changes nothing in Azure.
func (g *Generator) Check(ctx context.Context) error {
	_, err := g.Generate(ctx)
	return err
}

// Close releases connections, and cancels a login in progress.
func (g *Generator) Close() error { return g.config.Close() }

// refreshToken exchanges a token of Microsoft Entra ID for one of the registry.
func (g *Generator) refreshToken(ctx context.Context) (string, error) {
	login, err := g.config.Token(ctx)
	if err != nil {
		return "", err
	}
	options := &azcontainerregistry.AuthenticationClientExchangeAADAccessTokenForACRRefreshTokenOptions{AccessToken: &login}
	if tenant := g.config.Tenant(); tenant != "" {
		options.Tenant = &tenant
	}
	out, err := g.api.ExchangeAADAccessTokenForACRRefreshToken(ctx, azcontainerregistry.PostContentSchemaGrantTypeAccessToken, g.config.Host, options)
	if err != nil {
		var r *azcore.ResponseError
		if errors.As(err, &r) && r.StatusCode == http.StatusUnauthorized {
			g.config.Forget(login)
		}
		return "", explain(ctx, err, exchanging)
	}
	return text(out.RefreshToken)
}

// accessToken exchanges a refresh token for a token with the scope.
func (g *Generator) accessToken(ctx context.Context, refresh string) (string, error) {
	out, err := g.api.ExchangeACRRefreshTokenForACRAccessToken(ctx, g.config.Host, g.scope, refresh,
		&azcontainerregistry.AuthenticationClientExchangeACRRefreshTokenForACRAccessTokenOptions{GrantType: to.Ptr(azcontainerregistry.TokenGrantTypeRefreshToken)})
	if err != nil {
		return "", explain(ctx, err, scoping)
	}
	return text(out.AccessToken)
}

func text(token *string) (string, error) {
	if token == nil {
		return "", noToken()
	}
	return *token, nil
}

// expiryOf returns when a token expires. The signature does not matter: the token comes from the registry, and is sent to it.
func expiryOf(token string) (time.Time, error) {
	var claims jwt.RegisteredClaims
	_, _, err := jwt.NewParser().ParseUnverified(token, &claims)
	if err != nil || claims.ExpiresAt == nil || claims.ExpiresAt.Unix() <= 0 {
		return time.Time{}, noToken()
	}
	return claims.ExpiresAt.Time, nil
}
