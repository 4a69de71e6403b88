// Package keyvault reads and writes Azure Key Vault for the store Kinds AzureKeyVault and ClusterAzureKeyVault.
package keyvault

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
)

// A Provider creates clients. Its zero value is ready for use.
type Provider struct {
	Network azureconfig.Network
}

// RBAC used by the shared controllers for these Kinds.
// +kubebuilder:rbac:groups=azure.direct-secrets.io,resources=azurekeyvaults,verbs=list;watch
// +kubebuilder:rbac:groups=azure.direct-secrets.io,resources=azurekeyvaults/status,verbs=patch
// +kubebuilder:rbac:groups=azure.direct-secrets.io,resources=clusterazurekeyvaults,verbs=list;watch,roleName=cluster
// +kubebuilder:rbac:groups=azure.direct-secrets.io,resources=clusterazurekeyvaults/status,verbs=patch,roleName=cluster

// Kinds returns the store Kinds that the Provider serves.
func (p Provider) Kinds() []provider.Kind {
	return []provider.Kind{provider.KindOf(p.Connect), provider.ClusterKindOf(p.ConnectCluster)}
}

// Connect returns the client of a store. It does not call Azure.
func (p Provider) Connect(ctx context.Context, s *v1alpha1.AzureKeyVault, creds provider.Credentials) (provider.Client, error) {
	return p.connect(ctx, s.Azure(), creds)
}

// ConnectCluster returns the client of a cluster store. It does not call Azure.
func (p Provider) ConnectCluster(ctx context.Context, s *v1alpha1.ClusterAzureKeyVault, creds provider.Credentials) (provider.Client, error) {
	return p.connect(ctx, s.Azure(), creds)
}

func (p Provider) connect(ctx context.Context, spec *v1alpha1.AzureSpec, creds provider.Credentials) (provider.Client, error) {
	c, err := p.Network.Load(ctx, spec, creds)
	if err != nil {
		return nil, err
	}
	// The domain of an emulator proves nothing. The Config checks each challenge against the spec, whatever the domain.
	api, err := azsecrets.NewClient(c.VaultURL, c, &azsecrets.ClientOptions{ClientOptions: c.Options, DisableChallengeResourceVerification: c.Emulated})
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.vaultURL: Azure's library does not accept it; write it as https://NAME.vault.azure.net")
	}
	return &Client{&vault{api: api, config: c, slots: newSlots()}}, nil
}

// A Client reads and writes the secrets of one vault. It is not a provider.Batcher, because one call of Key Vault reads one secret.
type Client struct{ *vault }

// A vault sends calls. Its methods explain errors, but for get and set.
type vault struct {
	api    *azsecrets.Client
	config *azureconfig.Config
	slots  *slots
}

var (
	_ provider.Finder     = &Client{}
	_ provider.Checker    = &Client{}
	_ provider.Identifier = &Client{}
)

// Identity returns the address of the vault. It does not call Azure.
func (c *Client) Identity(context.Context) (provider.Identity, error) {
	return provider.Identity{Place: c.config.Place}, nil
}

// Close releases connections.
func (c *Client) Close() error { return c.config.Close() }

// Get reads one version of a secret, and its tags if metadata is requested.
func (c *Client) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	name, err := nameOf(ref.Key)
	if err != nil {
		return provider.Value{}, err
	}
	if ref.Version != "" && !versionID.MatchString(ref.Version) {
		return provider.Value{}, provider.NewError(provider.Invalid, "version %s: is not the version of a secret, which has 32 hexadecimal digits", shown(ref.Version))
	}
	out, err := c.get(ctx, name, ref.Version)
	if err != nil {
		return provider.Value{}, azureconfig.Explain(ctx, err, about(ref))
	}
	return value(ref, name, out.Secret)
}

// get reads a secret after a login. Both end with ctx.
func (c *vault) get(ctx context.Context, name, version string) (azsecrets.GetSecretResponse, error) {
	if err := c.config.Ready(ctx); err != nil {
		return azsecrets.GetSecretResponse{}, err
	}
	return c.api.GetSecret(ctx, name, version, nil)
}

// value returns the Value of an answer. An answer without a value, or of another secret, is Unavailable.
func value(ref provider.Ref, name string, s azsecrets.Secret) (provider.Value, error) {
	got, version, ok := parseID(s.ID)
	switch {
	case !ok || s.Value == nil || ref.Version != "" && version != ref.Version:
		return provider.Value{}, provider.NewError(provider.Unavailable, "%s: spec.vaultURL: the response is not that of Key Vault; check the address", about(ref))
	case got != name:
		return provider.Value{}, otherName(ref, got, name)
	}
	if err := usable(s.Attributes, time.Now()); err != "" {
		return provider.Value{}, provider.NewError(provider.Invalid, "%s: %s", about(ref), err)
	}
	v := provider.Value{Key: ref.Key, Data: []byte(*s.Value), Version: version}
	if ref.Metadata {
		v.Metadata = tagsOf(s.Tags)
	}
	return v, nil
}

// usable returns why a secret must not be used at a time, with the fix; empty if it can be used. Key Vault itself refuses only disabled
// secrets.
func usable(a *azsecrets.SecretAttributes, now time.Time) string {
	switch {
	case a == nil:
		return ""
	case a.Enabled != nil && !*a.Enabled:
		return "is disabled; enable it, or add a version"
	case a.Expires != nil && !now.Before(*a.Expires):
		return "has expired on " + a.Expires.UTC().Format(time.RFC3339) + "; change its expiry, or add a version"
	case a.NotBefore != nil && now.Before(*a.NotBefore):
		return "is not valid before " + a.NotBefore.UTC().Format(time.RFC3339) + "; change its activation date, or add a version"
	}
	return ""
}

// tagsOf returns the tags of a secret.
func tagsOf(tags map[string]*string) map[string]string {
	m := make(map[string]string, len(tags))
	for k, v := range tags {
		if v != nil {
			m[k] = *v
		}
	}
	return m
}
