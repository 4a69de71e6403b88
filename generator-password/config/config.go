// Package config embeds the rights that generator-password needs.
package config

import _ "embed"

// RBAC holds the ClusterRole as a YAML document.
//
//go:embed rbac.yaml
var RBAC []byte
