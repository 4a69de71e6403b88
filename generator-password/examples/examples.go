// Package examples embeds manifests that users can start from. Tests apply them.
package examples

import _ "embed"

// Password fills a Secret with passwords, through a generator of a namespace and through a cluster
// generator, as YAML documents.
//
//go:embed password.yaml
var Password []byte
