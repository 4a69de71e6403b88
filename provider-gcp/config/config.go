// Package config embeds the rights that provider-gcp needs.
package config

import _ "embed"

// RBAC holds the ClusterRoles as YAML documents: the one that is always needed, and one for stores
// that log in with the token of a ServiceAccount.
//
//go:embed rbac.yaml
var RBAC []byte
