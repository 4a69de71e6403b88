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

// Kinds returns the store Kinds that this package serves.
func Kinds() []provider.Kind {
	return []provider.Kind{
		provider.KindOf(Connect),
		provider.ClusterKindOf(ConnectCluster),
	}
}

// Connect returns the client of a store. It does not call Vault.
func Connect(ctx context.Context, s *v1alpha1.VaultKV, creds provider.Credentials) (provider.Client, error) {
	return newClient(ctx, &s.Spec, creds)
}

// ConnectCluster returns the client of a cluster store. It does not call Vault.
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

	// mounted is set once Vault has confirmed that mount is a KV secrets engine of the right version.
	mounted atomic.Bool
}

var (
	_ provider.Finder     = &Client{}
	_ provider.Checker    = &Client{}
	_ provider.Identifier = &Client{}
)

// Identity returns the mount. It does not call Vault, because a server's own description of itself is no proof.
func (c *Client) Identity(context.Context) (provider.Identity, error) {
	return provider.Identity{Place: c.vault.Place(c.mount)}, nil
}

// Close revokes the session's token, and releases connections.
func (c *Client) Close() error {
	c.vault.Close()
	return nil
}
