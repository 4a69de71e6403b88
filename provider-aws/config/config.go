// Package config embeds the rights that provider-aws needs.
package config

import _ "embed"

// RBAC holds ClusterRoles as YAML documents, made from the markers +kubebuilder:rbac of the code; the comment of each
// says where to bind it.
//
//go:embed rbac.yaml
var RBAC []byte
