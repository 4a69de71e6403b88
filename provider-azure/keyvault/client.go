// Package keyvault reads and writes Azure Key Vault for the store Kinds AzureKeyVault and ClusterAzureKeyVault.
package keyvault

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
)

// A Provider creates clients. Its zero value is ready for use.
type Provider struct {
	Network azureconfig.Network

	// sleep waits for a time, or until ctx ends, which it reports as false; nil means provider.Sleep.
	sleep func(ctx context.Context, d time.Duration) bool
}

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
	api, err := azsecrets.NewClient(c.URL, c, &azsecrets.ClientOptions{ClientOptions: c.Options, DisableChallengeResourceVerification: c.Emulated})
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.vaultURL: Azure's library does not accept it; write it as https://NAME.vault.azure.net")
	}
	keys, err := azkeys.NewClient(c.URL, c, &azkeys.ClientOptions{ClientOptions: c.Options, DisableChallengeResourceVerification: c.Emulated})
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.vaultURL: Azure's library does not accept it; write it as https://NAME.vault.azure.net")
	}
	sleep := p.sleep
	if sleep == nil {
		sleep = provider.Sleep
	}
	return &Client{&vault{api: api, keys: keys, config: c, sleep: sleep, unfinished: &recoveries{all: map[string]recovery{}}}}, nil
}

// A Client reads and writes the secrets of one vault, and reads its certificates and keys. It is not a provider.Batcher, because one call of Key Vault reads one secret.
type Client struct{ *vault }

// A vault sends calls. Its methods explain errors, but for get and set.
type vault struct {
	api    *azsecrets.Client
	keys   *azkeys.Client
	config *azureconfig.Config
	sleep  func(ctx context.Context, d time.Duration) bool

	unfinished *recoveries
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

// Get reads one version of a secret, a certificate or a key, and its tags if metadata is requested.
func (c *Client) Get(ctx context.Context, ref provider.Ref) (provider.Value, error) {
	of, name, err := objectOf(ref.Key)
	if err != nil {
		return provider.Value{}, err
	}
	if ref.Version != "" && !versionID.MatchString(ref.Version) {
		return provider.Value{}, provider.NewError(provider.Invalid, "version %s: is not the version of a %s, which has 32 hexadecimal digits", provider.Quoted(ref.Version), of.noun())
	}
	switch of {
	case certificates:
		return c.certificate(ctx, ref, name)
	case keys:
		return c.key(ctx, ref, name)
	}
	s, version, err := c.secret(ctx, ref, name, nil)
	if err != nil {
		return provider.Value{}, err
	}
	return valueOf(ref, []byte(*s.Value), version, s.Tags), nil
}

// secret reads a secret that can be used, and its version. An answer without a value, or of another secret, is Unavailable.
func (c *vault) secret(ctx context.Context, ref provider.Ref, name string, options *azsecrets.GetSecretOptions) (s azsecrets.Secret, version string, err error) {
	out, err := c.get(ctx, name, ref.Version, options)
	if err != nil {
		return s, "", explain(ctx, err, ref)
	}
	s = out.Secret
	got, version, ok := parseID(s.ID)
	if err := checkAnswer(ref, answer{name: got, version: version, valid: ok && s.Value != nil}, name); err != nil {
		return s, "", err
	}
	a := deref(s.Attributes)
	return s, version, usable(ref, period{a.Enabled, a.NotBefore, a.Expires}, time.Now())
}

// get reads a secret after a login. Both end with ctx.
func (c *vault) get(ctx context.Context, name, version string, options *azsecrets.GetSecretOptions) (azsecrets.GetSecretResponse, error) {
	if err := c.config.Ready(ctx); err != nil {
		return azsecrets.GetSecretResponse{}, err
	}
	return c.api.GetSecret(ctx, name, version, options)
}

// explain explains the error of a read.
func explain(ctx context.Context, err error, ref provider.Ref) error {
	of, _ := split(ref.Key)
	return azureconfig.Explain(ctx, err, about(ref), accesses[of])
}

// accesses are what the reads of a collection need. A certificate is read as the secret of the same name.
var accesses = map[collection]azureconfig.Access{
	secrets:      azureconfig.ReadSecret,
	certificates: azureconfig.ReadSecret,
	keys:         azureconfig.ReadKey,
}

// An answer is what the response to a read says about the object.
type answer struct {
	name, version string
	valid         bool // whether it has an ID and a value
}

// checkAnswer returns an error if an answer is not about the requested version of the object with a name.
func checkAnswer(ref provider.Ref, a answer, name string) error {
	switch {
	case !a.valid || ref.Version != "" && a.version != ref.Version:
		return notKeyVault(ref)
	case a.name != name:
		return otherName(ref, a.name, name)
	}
	return nil
}

func notKeyVault(ref provider.Ref) error {
	return provider.NewError(provider.Unavailable, "%s: spec.vaultURL: the response is not that of Key Vault; check the address", about(ref))
}

// valueOf returns a Value, with tags if metadata is requested.
func valueOf(ref provider.Ref, data []byte, version string, tags map[string]*string) provider.Value {
	v := provider.Value{Key: ref.Key, Data: data, Version: version}
	if ref.Metadata {
		v.Metadata = tagsOf(tags)
	}
	return v
}

// A period is when an object can be used. A field that is nil does not limit it.
type period struct {
	enabled            *bool
	notBefore, expires *time.Time
}

// usable returns an error if an object must not be used at a time. Key Vault itself refuses only disabled secrets.
func usable(ref provider.Ref, p period, now time.Time) error {
	why := ""
	switch {
	case p.enabled != nil && !*p.enabled:
		why = "is disabled; enable it, or add a version"
	case p.expires != nil && !now.Before(*p.expires):
		why = "has expired on " + p.expires.UTC().Format(time.RFC3339) + "; change its expiry, or add a version"
	case p.notBefore != nil && now.Before(*p.notBefore):
		why = "is not valid before " + p.notBefore.UTC().Format(time.RFC3339) + "; change its activation date, or add a version"
	default:
		return nil
	}
	return provider.NewError(provider.Invalid, "%s: %s", about(ref), why)
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
