// Package manifests embeds the CustomResourceDefinitions of common, so that tests and tools need no paths. Every module
// has such a package: its CRDs, its rights, and its examples.
package manifests

import "embed"

// CRDs are the CustomResourceDefinitions of common, a file for each.
//
//go:embed crds
var CRDs embed.FS
