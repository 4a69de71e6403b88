// Package manifests embeds the CustomResourceDefinitions of common, so that tests and tools need no paths. Every
// module has such a package with its CRDs, its RBAC and its examples.
package manifests

import "embed"

// CRDs are the CustomResourceDefinitions of common, one file for each.
//
//go:embed crds
var CRDs embed.FS
