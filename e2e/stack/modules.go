package stack

import (
	"k8s.io/apimachinery/pkg/runtime"

	passwordcrds "github.com/direct-secrets/direct-secrets/generator-password/apis/crds"
	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	passwordconfig "github.com/direct-secrets/direct-secrets/generator-password/config"
	awscrds "github.com/direct-secrets/direct-secrets/provider-aws/apis/crds"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	awsconfig "github.com/direct-secrets/direct-secrets/provider-aws/config"
	gcpcrds "github.com/direct-secrets/direct-secrets/provider-gcp/apis/crds"
	gcpv1 "github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	gcpconfig "github.com/direct-secrets/direct-secrets/provider-gcp/config"
	vaultcrds "github.com/direct-secrets/direct-secrets/provider-vault/apis/crds"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	vaultconfig "github.com/direct-secrets/direct-secrets/provider-vault/config"
)

// The modules that a Stack can run: the names of their binaries and ServiceAccounts.
const (
	ProviderAWS       = "provider-aws"
	ProviderGCP       = "provider-gcp"
	ProviderVault     = "provider-vault"
	GeneratorPassword = "generator-password"
)

// A module is what one ships beside its binary.
type module struct {
	name  string
	crds  func() [][]byte
	rbac  []byte
	types func(*runtime.Scheme) error
}

var modules = []module{
	{ProviderAWS, awscrds.All, awsconfig.RBAC, awsv1.AddToScheme},
	{ProviderGCP, gcpcrds.All, gcpconfig.RBAC, gcpv1.AddToScheme},
	{ProviderVault, vaultcrds.All, vaultconfig.RBAC, vaultv1.AddToScheme},
	{GeneratorPassword, passwordcrds.All, passwordconfig.RBAC, passwordv1.AddToScheme},
}

// Modules returns the names of the modules that a Stack can run.
func Modules() []string {
	var names []string
	for _, m := range modules {
		names = append(names, m.name)
	}
	return names
}
