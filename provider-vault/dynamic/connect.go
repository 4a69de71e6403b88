// Package dynamic generates credentials with any secrets engine of Vault and OpenBao, or tokens of Vault
// itself, for the generator Kinds VaultDynamicSecret and ClusterVaultDynamicSecret.
package dynamic

import (
	"context"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/session"
)

// defaultDelay is how long replaced credentials stay valid, unless the spec sets another time.
const defaultDelay = 5 * time.Minute

// The keys for records of credentials; see common/internal/proof. An apply of a Secret that does not exist needs create.
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=records.vault.direct-secrets.io,verbs=get;create;patch,roleName=records

// Kinds returns the generator Kinds that this package serves.
func Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(Connect),
		provider.ClusterGeneratorKindOf(ConnectCluster),
	}
}

// Connect returns the Generator of an object. It does not call Vault.
func Connect(ctx context.Context, g *v1alpha1.VaultDynamicSecret, creds provider.Credentials) (provider.Generator, error) {
	return newGenerator(ctx, &g.Spec, creds)
}

// ConnectCluster returns the Generator of an object. It does not call Vault.
func ConnectCluster(ctx context.Context, g *v1alpha1.ClusterVaultDynamicSecret, creds provider.Credentials) (provider.Generator, error) {
	return newGenerator(ctx, &g.Spec.VaultDynamicSecretSpec, creds)
}

func newGenerator(ctx context.Context, spec *v1alpha1.VaultDynamicSecretSpec, creds provider.Credentials) (provider.Generator, error) {
	request, err := requestOf(spec)
	if err != nil {
		return nil, err
	}
	part, err := partOf(spec.ResultType)
	if err != nil {
		return nil, err
	}
	delay, err := spec.RevocationDelay.Or(defaultDelay)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.revocationDelay: %s", err)
	}
	vault, err := session.New(ctx, &spec.VaultServer, creds)
	if err != nil {
		return nil, err
	}
	return &Generator{request: request, part: part, delay: delay, vault: vault}, nil
}

// A Generator generates credentials, and renews and revokes them. It logs in when it is first used.
type Generator struct {
	request request
	part    v1alpha1.ResultType
	delay   time.Duration
	vault   *session.Client
}

var (
	_ provider.Renewer = &Generator{}
	_ provider.Cleaner = &Generator{}
	_ provider.Checker = &Generator{}
)

// Check checks the address and the login.
func (g *Generator) Check(ctx context.Context) error {
	if err := g.vault.Check(ctx); err != nil {
		return err
	}
	return g.vault.Warnings()
}

// Linger implements provider.Cleaner.
func (g *Generator) Linger() time.Duration { return g.delay }

// Close releases connections. It revokes the session's token only if no credentials were created with it: Vault
// revokes a lease together with the token that created it, and the credentials are still in use.
func (g *Generator) Close() error {
	g.vault.Close()
	return nil
}
