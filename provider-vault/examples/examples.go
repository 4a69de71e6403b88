// Package examples embeds manifests that users can start from. Tests apply them.
package examples

import _ "embed"

// VaultKV reads a secret of a KV secrets engine, as YAML documents.
//
//go:embed vaultkv.yaml
var VaultKV []byte

// VaultDynamicSecret makes credentials of a database for each object that asks, as YAML documents.
//
//go:embed vaultdynamicsecret.yaml
var VaultDynamicSecret []byte
