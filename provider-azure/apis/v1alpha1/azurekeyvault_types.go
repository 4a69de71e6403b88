package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AzureKeyVault is a store: one Azure Key Vault, used as one identity.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=azkv,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Vault",type=string,JSONPath=`.spec.vaultURL`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AzureKeyVault struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AzureKeyVaultSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// AzureKeyVaultList is a list of AzureKeyVaults.
//
// +kubebuilder:object:root=true
type AzureKeyVaultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AzureKeyVault `json:"items"`
}

// ClusterAzureKeyVault is an AzureKeyVault that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cazkv,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Vault",type=string,JSONPath=`.spec.vaultURL`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterAzureKeyVault struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterAzureKeyVaultSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterAzureKeyVaultList is a list of ClusterAzureKeyVaults.
//
// +kubebuilder:object:root=true
type ClusterAzureKeyVaultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterAzureKeyVault `json:"items"`
}

// AzureKeyVaultSpec describes the vault, and how to log in.
type AzureKeyVaultSpec struct {
	common.StoreSpec `json:",inline"`
	AzureSpec        `json:",inline"`
}

// ClusterAzureKeyVaultSpec is an AzureKeyVaultSpec with conditions for namespaces.
type ClusterAzureKeyVaultSpec struct {
	AzureKeyVaultSpec       `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}

// StoreSpec returns the embedded spec.
func (s *AzureKeyVault) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// StoreSpec returns the embedded spec.
func (s *ClusterAzureKeyVault) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// ClusterStoreSpec returns the embedded spec.
func (s *ClusterAzureKeyVault) ClusterStoreSpec() *common.ClusterStoreSpec {
	return &s.Spec.ClusterStoreSpec
}
