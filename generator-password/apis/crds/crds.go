// Package crds holds the CustomResourceDefinitions of the Kinds that make passwords, so that programs can
// install them without knowing where they lie.
package crds

import _ "embed"

// The CustomResourceDefinitions, each one YAML document.
var (
	//go:embed generator.direct-secrets.io_passwords.yaml
	Password []byte
	//go:embed generator.direct-secrets.io_clusterpasswords.yaml
	ClusterPassword []byte
)

// All returns every CustomResourceDefinition of this package.
func All() [][]byte { return [][]byte{Password, ClusterPassword} }
