// Package crds holds the CustomResourceDefinitions of the in-memory provider, so that tests can
// install them without knowing where they lie.
package crds

import _ "embed"

// The CustomResourceDefinitions, each one YAML document.
var (
	//go:embed fake.direct-secrets.io_fakestores.yaml
	FakeStore []byte
	//go:embed fake.direct-secrets.io_otherfakestores.yaml
	OtherFakeStore []byte
	//go:embed fake.direct-secrets.io_clusterfakestores.yaml
	ClusterFakeStore []byte
	//go:embed fake.direct-secrets.io_fakegenerators.yaml
	FakeGenerator []byte
	//go:embed fake.direct-secrets.io_clusterfakegenerators.yaml
	ClusterFakeGenerator []byte
)

// All returns every CustomResourceDefinition of this package.
func All() [][]byte {
	return [][]byte{FakeStore, OtherFakeStore, ClusterFakeStore, FakeGenerator, ClusterFakeGenerator}
}
