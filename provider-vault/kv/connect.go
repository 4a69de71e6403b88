// Package kv reads and writes the KV secrets engine of Vault and OpenBao for the store Kinds VaultKV and
// ClusterVaultKV.
package kv

import (
	"context"
	"sync/atomic"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// What the loops of common ask for, for these Kinds.
// +kubebuilder:rbac:groups=vault.direct-secrets.io,resources=vaultkvs,verbs=list;watch
// +kubebuilder:rbac:groups=vault.direct-secrets.io,resources=vaultkvs/status,verbs=patch
// +kubebuilder:rbac:groups=vault.direct-secrets.io,resources=clustervaultkvs,verbs=list;watch,roleName=cluster
// +kubebuilder:rbac:groups=vault.direct-secrets.io,resources=clustervaultkvs/status,verbs=patch,roleName=cluster

// Kinds returns the store Kinds that this package serves.
func Kinds() []provider.Kind {
	return []provider.Kind{
		provider.KindOf(Connect),
		provider.ClusterKindOf(ConnectCluster),
	}
}

// Connect makes the client of a store. Vault is not called.
func Connect(ctx context.Context, s *v1alpha1.VaultKV, creds provider.Credentials) (provider.Client, error) {
	return newClient(ctx, &s.Spec, creds)
}

// ConnectCluster makes the client of a cluster store. Vault is not called.
func ConnectCluster(ctx context.Context, s *v1alpha1.ClusterVaultKV, creds provider.Credentials) (provider.Client, error) {
	return newClient(ctx, &s.Spec.VaultKVSpec, creds)
}

func newClient(ctx context.Context, spec *v1alpha1.VaultKVSpec, creds provider.Credentials) (provider.Client, error) {
	mount, err := session.CheckMount("spec.path", spec.Path)
	if err != nil {
		return nil, err
	}
	engine, err := engineOf(spec.Version)
	if err != nil {
		return nil, err
	}
	vault, err := session.New(ctx, &spec.VaultServer, creds)
	if err != nil {
		return nil, err
	}
	return &Client{mount: mount, engine: engine, vault: vault}, nil
}

// A Client reads one KV secrets engine. It logs in when it is first used.
type Client struct {
	mount  string
	engine engine
	vault  *session.Client

	// mounted is true once Vault has said that mount is a KV secrets engine of the right version.
	mounted atomic.Bool
}

var (
	_ provider.Finder     = &Client{}
	_ provider.Checker    = &Client{}
	_ provider.Identifier = &Client{}
)

// Identity returns the mount. Vault is not called: what a server says of itself proves nothing.
func (c *Client) Identity(context.Context) (provider.Identity, error) {
	return provider.Identity{Place: c.vault.Place(c.mount)}, nil
}

// Close ends the session at Vault, and releases connections.
func (c *Client) Close() error {
	c.vault.Close()
	return nil
}
