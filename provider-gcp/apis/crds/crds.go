// Package crds holds the CustomResourceDefinitions of the Kinds of Google Cloud, so that programs can
// install them without knowing where they lie.
package crds

import _ "embed"

// The CustomResourceDefinitions, each one YAML document.
var (
	//go:embed gcp.direct-secrets.io_gcpsecretmanagers.yaml
	GCPSecretManager []byte
	//go:embed gcp.direct-secrets.io_clustergcpsecretmanagers.yaml
	ClusterGCPSecretManager []byte
	//go:embed gcp.direct-secrets.io_gcpaccesstokens.yaml
	GCPAccessToken []byte
	//go:embed gcp.direct-secrets.io_clustergcpaccesstokens.yaml
	ClusterGCPAccessToken []byte
)

// All returns every CustomResourceDefinition of this package.
func All() [][]byte {
	return [][]byte{GCPSecretManager, ClusterGCPSecretManager, GCPAccessToken, ClusterGCPAccessToken}
}
