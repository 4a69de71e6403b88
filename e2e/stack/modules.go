package stack

import (
	"io/fs"

	"k8s.io/apimachinery/pkg/runtime"

	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	password "github.com/direct-secrets/direct-secrets/generator-password/manifests"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	aws "github.com/direct-secrets/direct-secrets/provider-aws/manifests"
	gcpv1 "github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	gcp "github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	vault "github.com/direct-secrets/direct-secrets/provider-vault/manifests"
)

// These are the modules that a Stack can run: the names of their binaries and ServiceAccounts.
const (
	ProviderAWS       = "provider-aws"
	ProviderGCP       = "provider-gcp"
	ProviderVault     = "provider-vault"
	GeneratorPassword = "generator-password"
)

// A module holds the files that a module ships in addition to its binary.
type module struct {
	name  string
	crds  fs.FS
	rbac  []byte
	types func(*runtime.Scheme) error
}

var modules = []module{
	{ProviderAWS, aws.CRDs, aws.Rights, awsv1.AddToScheme},
	{ProviderGCP, gcp.CRDs, gcp.Rights, gcpv1.AddToScheme},
	{ProviderVault, vault.CRDs, vault.Rights, vaultv1.AddToScheme},
	{GeneratorPassword, password.CRDs, password.Rights, passwordv1.AddToScheme},
}

// Modules returns the names of the modules that a Stack can run.
func Modules() []string {
	var names []string
	for _, m := range modules {
		names = append(names, m.name)
	}
	return names
}
