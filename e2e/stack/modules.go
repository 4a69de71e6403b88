package stack

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	passwordv1 "github.com/direct-secrets/direct-secrets/generator-password/apis/v1alpha1"
	awsv1 "github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	gcpv1 "github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	vaultv1 "github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// These are the modules that scenarios name: the names of their binaries and ServiceAccounts.
const (
	ProviderAWS        = "provider-aws"
	ProviderGCP        = "provider-gcp"
	ProviderKubernetes = "provider-kubernetes"
	ProviderVault      = "provider-vault"
	GeneratorKeys      = "generator-keys"
	GeneratorPassword  = "generator-password"
)

// kindTypes are the Kinds that scenarios use as Go types.
var kindTypes = []func(*runtime.Scheme) error{awsv1.AddToScheme, gcpv1.AddToScheme, vaultv1.AddToScheme, passwordv1.AddToScheme}

// A module holds the files that a module ships in addition to its binary.
type module struct {
	name string
	crds fs.FS
	rbac []byte
}

// modules returns the modules in the checkout of the working directory: each folder with a program, as the Makefile
// finds them.
var modules = sync.OnceValues(func() ([]module, error) {
	root, err := find("charts")
	if err != nil {
		return nil, err
	}
	var all []module
	for _, pattern := range []string{"generator-*", "provider-*"} {
		mains, err := filepath.Glob(filepath.Join(filepath.Dir(root), pattern, "main.go"))
		if err != nil {
			return nil, err
		}
		for _, main := range mains {
			folder := filepath.Dir(main)
			rbac, err := os.ReadFile(filepath.Join(folder, "manifests", "rbac.yaml"))
			if err != nil {
				return nil, err
			}
			all = append(all, module{filepath.Base(folder), os.DirFS(filepath.Join(folder, "manifests", "crds")), rbac})
		}
	}
	return all, nil
})

// chosen returns the modules with the given names; without names all.
func chosen(names []string) ([]module, error) {
	all, err := modules()
	return slices.DeleteFunc(slices.Clone(all), func(m module) bool {
		return len(names) > 0 && !slices.Contains(names, m.name)
	}), err
}

// Modules returns the names of the modules that a Stack can run.
func Modules() []string {
	all, err := modules()
	if err != nil {
		panic(err) // This happens only outside of a checkout.
	}
	var names []string
	for _, m := range all {
		names = append(names, m.name)
	}
	return names
}
