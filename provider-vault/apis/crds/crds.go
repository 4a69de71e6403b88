// Package crds holds the CustomResourceDefinitions of the store Kinds of Vault, so that programs can
// install them without knowing where they lie.
package crds

import _ "embed"

// The CustomResourceDefinitions, each one YAML document.
var (
	//go:embed vault.direct-secrets.io_vaultkvs.yaml
	VaultKV []byte
	//go:embed vault.direct-secrets.io_clustervaultkvs.yaml
	ClusterVaultKV []byte
	//go:embed vault.direct-secrets.io_vaultdynamicsecrets.yaml
	VaultDynamicSecret []byte
	//go:embed vault.direct-secrets.io_clustervaultdynamicsecrets.yaml
	ClusterVaultDynamicSecret []byte
)

// All returns every CustomResourceDefinition of this package.
func All() [][]byte {
	return [][]byte{VaultKV, ClusterVaultKV, VaultDynamicSecret, ClusterVaultDynamicSecret}
}
