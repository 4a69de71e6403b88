// Package manifests embeds what a cluster needs for provider-vault, and what users can start from.
package manifests

import "embed"

// CRDs are the CustomResourceDefinitions of this module, a file for each.
//
//go:embed crds
var CRDs embed.FS

// Rights are ClusterRoles as YAML documents; the comment of each says where to bind it.
//
//go:embed rbac.yaml
var Rights []byte

// Examples are files of YAML documents. Tests apply them.
//
//go:embed examples
var Examples embed.FS
