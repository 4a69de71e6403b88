// Package examples embeds manifests that users can start from. Tests apply them.
package examples

import _ "embed"

// VaultKV reads a secret of a KV secrets engine, as YAML documents.
//
//go:embed vaultkv.yaml
var VaultKV []byte
