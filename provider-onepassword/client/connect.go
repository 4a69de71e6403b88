// Package client reads and writes the items of vaults of 1Password through a Connect server, for the store Kinds OnePasswordConnect and
// ClusterOnePasswordConnect.
//
// It calls the REST API of Connect itself. The module github.com/1Password/connect-sdk-go has had no release since July 2023, takes
// no context, has no timeout, reads answers without a limit, and follows redirects.
package client

import (
	"context"
	"strings"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/apis/v1alpha1"
)

// Connect returns the client of a store. It does not call the server.
func Connect(ctx context.Context, s *v1alpha1.OnePasswordConnect, creds provider.Credentials) (provider.Client, error) {
	return connect(ctx, &s.Spec, creds)
}

// ConnectCluster returns the client of a cluster store. It does not call the server.
func ConnectCluster(ctx context.Context, s *v1alpha1.ClusterOnePasswordConnect, creds provider.Credentials) (provider.Client, error) {
	return connect(ctx, &s.Spec.OnePasswordConnectSpec, creds)
}

// The fields of the spec that errors name.
const (
	hostField   = "spec.connectHost"
	tokenField  = "spec.auth.secretRef.connectTokenSecretRef"
	vaultsField = "spec.vaults"
)

func connect(ctx context.Context, spec *v1alpha1.OnePasswordConnectSpec, creds provider.Credentials) (provider.Client, error) {
	u, plain, err := provider.ParseServer(creds, hostField, spec.ConnectHost, spec.AllowPlainHTTP)
	if err != nil {
		return nil, err
	}
	if len(spec.Vaults) == 0 {
		return nil, provider.NewError(provider.Invalid, "%s: has no vault; name at least one", vaultsField)
	}
	raw, err := creds.SecretValue(ctx, spec.Auth.SecretRef.ConnectTokenSecretRef)
	if err != nil {
		return nil, provider.Field(tokenField, err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, provider.NewError(provider.Invalid, "%s: is not a token of Connect; store the token alone under this key", tokenField)
	}
	secured, err := provider.ServerTLS(ctx, creds, "spec", spec.Authorities)
	if err != nil {
		return nil, err
	}
	transport := provider.NewTransport(secured)
	u.Path = strings.TrimRight(u.Path, "/")
	return &Client{
		api: api{provider.JSONAPI{
			Service: "the Connect server", Field: hostField, URL: u.String(), HTTP: provider.NewHTTPClient(transport, operation, isListing), Refused: refused,
			Authorization: func(context.Context) (string, error) { return "Bearer " + token, nil },
		}},
		transport: transport,
		names:     spec.Vaults, place: provider.Address(u) + " " + string(provider.EncodeJSON(spec.Vaults)),
		plain: plain, unanswered: map[string]time.Time{},
	}, nil
}
