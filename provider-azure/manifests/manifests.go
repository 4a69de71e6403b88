// Package manifests embeds the manifests that a cluster needs for provider-azure, and examples for users.
package manifests

import "embed"

// CRDs holds the CustomResourceDefinitions of this module, one file for each.
//
//go:embed crds
var CRDs embed.FS

// Permissions holds ClusterRoles as YAML documents. The comment of each says where to bind it.
//
//go:embed rbac.yaml
var Permissions []byte

// Examples holds files of YAML documents. Tests apply them.
//
//go:embed examples
var Examples embed.FS
