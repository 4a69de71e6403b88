// Package examples embeds manifests that users can start from. Tests apply them.
package examples

import _ "embed"

// SecretManager reads a secret of Google Secret Manager, as YAML documents.
//
//go:embed secretmanager.yaml
var SecretManager []byte

// WorkloadIdentity is a cluster store that logs in without any key, as YAML documents.
//
//go:embed workloadidentity.yaml
var WorkloadIdentity []byte

// AccessToken is a generator of access tokens and a pull secret of them, as YAML documents.
//
//go:embed accesstoken.yaml
var AccessToken []byte
