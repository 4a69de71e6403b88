package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// KVVersion is the version of a KV secrets engine.
type KVVersion string

// The versions; unset means v2.
const (
	KVv1 KVVersion = "v1"
	KVv2 KVVersion = "v2"
)

// VaultKV is a store: one KV secrets engine of HashiCorp Vault or OpenBao, used as one identity.
//
// +direct-secrets:store:shortName=vkv
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`

// VaultKVSpec describes where the secrets are, and how to log in.
type VaultKVSpec struct {
	common.StoreSpec `json:",inline"`
	VaultServer      `json:",inline"`

	// Mount path of the KV secrets engine, for example secret or team/kv.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// Version of the KV secrets engine. Default: v2.
	// +optional
	// +kubebuilder:validation:Enum="";v1;v2
	Version KVVersion `json:"version,omitempty"`
}
