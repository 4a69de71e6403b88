// Package examples embeds manifests that users can start from. Tests apply them.
package examples

import _ "embed"

// SecretsManager reads a secret of AWS Secrets Manager, as YAML documents.
//
//go:embed secretsmanager.yaml
var SecretsManager []byte

// ParameterStore reads parameters of AWS Systems Manager Parameter Store, through a store of a
// namespace and through a cluster store, as YAML documents.
//
//go:embed parameterstore.yaml
var ParameterStore []byte

// PushSecret pushes a Secret to AWS Secrets Manager, as YAML documents.
//
//go:embed pushsecret.yaml
var PushSecret []byte

// ECRAuthorizationToken keeps pull secrets for container registries, as YAML documents.
//
//go:embed ecrauthorizationtoken.yaml
var ECRAuthorizationToken []byte

// STSSessionToken keeps temporary access keys, as YAML documents.
//
//go:embed stssessiontoken.yaml
var STSSessionToken []byte
