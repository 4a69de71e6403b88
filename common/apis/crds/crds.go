// Package crds embeds the CustomResourceDefinitions of this module, so that tests and tools need
// no paths.
package crds

import _ "embed"

// ExternalSecrets is the CustomResourceDefinition of ExternalSecret, as YAML.
//
//go:embed direct-secrets.io_externalsecrets.yaml
var ExternalSecrets []byte

// PushSecrets is the CustomResourceDefinition of PushSecret, as YAML.
//
//go:embed direct-secrets.io_pushsecrets.yaml
var PushSecrets []byte

// ClusterExternalSecrets is the CustomResourceDefinition of ClusterExternalSecret, as YAML.
//
//go:embed direct-secrets.io_clusterexternalsecrets.yaml
var ClusterExternalSecrets []byte

// ClusterPushSecrets is the CustomResourceDefinition of ClusterPushSecret, as YAML.
//
//go:embed direct-secrets.io_clusterpushsecrets.yaml
var ClusterPushSecrets []byte

// All returns every CustomResourceDefinition of this module.
func All() [][]byte {
	return [][]byte{ExternalSecrets, PushSecrets, ClusterExternalSecrets, ClusterPushSecrets}
}
