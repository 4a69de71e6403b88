package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AWSParameterStore is a store: AWS Systems Manager Parameter Store in one region, used as one
// identity.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=awsps,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AWSParameterStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AWSParameterStoreSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// AWSParameterStoreSpec describes where the parameters are, and how to log in.
type AWSParameterStoreSpec struct {
	common.StoreSpec `json:",inline"`
	AWSSpec          `json:",inline"`
	KeySpec          `json:",inline"`
}

// AWSParameterStoreList is a list of AWSParameterStores.
//
// +kubebuilder:object:root=true
type AWSParameterStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AWSParameterStore `json:"items"`
}

// ClusterAWSParameterStore is an AWSParameterStore that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cawsps,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterAWSParameterStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterAWSParameterStoreSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterAWSParameterStoreSpec is an AWSParameterStoreSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple' || (has(self.authenticationScope) && self.authenticationScope == 'ManifestNamespace')",message="sessionTagsPolicy: Simple needs authenticationScope: ManifestNamespace, with which each namespace has its own session"
type ClusterAWSParameterStoreSpec struct {
	AWSParameterStoreSpec   `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}

// ClusterAWSParameterStoreList is a list of ClusterAWSParameterStores.
//
// +kubebuilder:object:root=true
type ClusterAWSParameterStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterAWSParameterStore `json:"items"`
}

// StoreSpec returns the embedded spec.
func (s *AWSParameterStore) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// AWS returns the embedded spec.
func (s *AWSParameterStore) AWS() *AWSSpec { return &s.Spec.AWSSpec }

// KeySpec returns the embedded spec.
func (s *AWSParameterStore) KeySpec() *KeySpec { return &s.Spec.KeySpec }

// StoreSpec returns the embedded spec.
func (s *ClusterAWSParameterStore) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// ClusterStoreSpec returns the embedded spec.
func (s *ClusterAWSParameterStore) ClusterStoreSpec() *common.ClusterStoreSpec {
	return &s.Spec.ClusterStoreSpec
}

// AWS returns the embedded spec.
func (s *ClusterAWSParameterStore) AWS() *AWSSpec { return &s.Spec.AWSSpec }

// KeySpec returns the embedded spec.
func (s *ClusterAWSParameterStore) KeySpec() *KeySpec { return &s.Spec.KeySpec }
