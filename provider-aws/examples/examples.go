// Package examples embeds manifests that users can start from. Tests apply them.
package examples

import _ "embed"

// SecretsManager reads a secret of AWS Secrets Manager, as YAML documents.
//
//go:embed secretsmanager.yaml
var SecretsManager []byte
