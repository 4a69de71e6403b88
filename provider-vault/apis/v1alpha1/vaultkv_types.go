package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// VaultKV is a store: one KV secrets engine of HashiCorp Vault or OpenBao, used as one identity.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=vaultkvs,shortName=vkv,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type VaultKV struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VaultKVSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// VaultKVList is a list of VaultKVs.
//
// +kubebuilder:object:root=true
type VaultKVList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VaultKV `json:"items"`
}

// ClusterVaultKV is a VaultKV that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clustervaultkvs,scope=Cluster,shortName=cvkv,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.server`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.spec.path`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterVaultKV struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterVaultKVSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterVaultKVList is a list of ClusterVaultKVs.
//
// +kubebuilder:object:root=true
type ClusterVaultKVList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterVaultKV `json:"items"`
}

// ClusterVaultKVSpec is a VaultKVSpec with conditions for namespaces.
type ClusterVaultKVSpec struct {
	VaultKVSpec             `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}

// KVVersion is the version of a KV secrets engine.
type KVVersion string

// The versions; unset means v2.
const (
	KVv1 KVVersion = "v1"
	KVv2 KVVersion = "v2"
)

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

// StoreSpec returns the embedded spec.
func (s *VaultKV) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// StoreSpec returns the embedded spec.
func (s *ClusterVaultKV) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// ClusterStoreSpec returns the embedded spec.
func (s *ClusterVaultKV) ClusterStoreSpec() *common.ClusterStoreSpec {
	return &s.Spec.ClusterStoreSpec
}
