// Package crds holds the CustomResourceDefinitions of the store and generator Kinds of AWS, so that programs can
// install them without knowing where they lie.
package crds

import _ "embed"

// The CustomResourceDefinitions, each one YAML document.
var (
	//go:embed aws.direct-secrets.io_awssecretsmanagers.yaml
	AWSSecretsManager []byte
	//go:embed aws.direct-secrets.io_clusterawssecretsmanagers.yaml
	ClusterAWSSecretsManager []byte
	//go:embed aws.direct-secrets.io_awsparameterstores.yaml
	AWSParameterStore []byte
	//go:embed aws.direct-secrets.io_clusterawsparameterstores.yaml
	ClusterAWSParameterStore []byte
	//go:embed aws.direct-secrets.io_ecrauthorizationtokens.yaml
	ECRAuthorizationToken []byte
	//go:embed aws.direct-secrets.io_clusterecrauthorizationtokens.yaml
	ClusterECRAuthorizationToken []byte
	//go:embed aws.direct-secrets.io_stssessiontokens.yaml
	STSSessionToken []byte
	//go:embed aws.direct-secrets.io_clusterstssessiontokens.yaml
	ClusterSTSSessionToken []byte
)

// All returns every CustomResourceDefinition of this package.
func All() [][]byte {
	return [][]byte{
		AWSSecretsManager, ClusterAWSSecretsManager, AWSParameterStore, ClusterAWSParameterStore,
		ECRAuthorizationToken, ClusterECRAuthorizationToken, STSSessionToken, ClusterSTSSessionToken,
	}
}
