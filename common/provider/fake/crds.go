package fake

import "embed"

// CRDs are the CustomResourceDefinitions of the Kinds that a Server serves, one file for each.
//
//go:embed manifests/crds
var CRDs embed.FS
