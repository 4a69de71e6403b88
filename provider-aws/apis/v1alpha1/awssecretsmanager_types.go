package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AWSSecretsManager is a store: AWS Secrets Manager in one region, used as one identity.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=awssm,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AWSSecretsManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AWSSecretsManagerSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// AWSSecretsManagerSpec describes where the secrets are, and how to log in.
//
// +kubebuilder:validation:XValidation:rule="!has(self.secretsManager)",message="secretsManager is not supported: use deletion"
type AWSSecretsManagerSpec struct {
	common.StoreSpec `json:",inline"`
	AWSSpec          `json:",inline"`
	KeySpec          `json:",inline"`

	// How secrets that a PushSecret created are deleted. Unset: with a recovery window of 30 days.
	// +optional
	Deletion *AWSSecretsManagerDeletion `json:"deletion,omitempty"`

	// Not supported: use deletion.
	// +optional
	SecretsManager *common.Renamed `json:"secretsManager,omitempty"`
}

// AWSSecretsManagerDeletion defines how secrets are deleted.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.forceDeleteWithoutRecovery) && self.forceDeleteWithoutRecovery && has(self.recoveryWindowInDays))",message="set either forceDeleteWithoutRecovery or recoveryWindowInDays"
type AWSSecretsManagerDeletion struct {
	// Delete secrets at once and permanently.
	// +optional
	ForceDeleteWithoutRecovery bool `json:"forceDeleteWithoutRecovery,omitempty"`

	// Number of days during which a deleted secret can be restored: 7 to 30.
	// +optional
	// +kubebuilder:validation:Minimum=7
	// +kubebuilder:validation:Maximum=30
	RecoveryWindowInDays int64 `json:"recoveryWindowInDays,omitempty"`
}

// AWSSecretsManagerList is a list of AWSSecretsManagers.
//
// +kubebuilder:object:root=true
type AWSSecretsManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AWSSecretsManager `json:"items"`
}

// ClusterAWSSecretsManager is an AWSSecretsManager that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cawssm,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterAWSSecretsManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterAWSSecretsManagerSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterAWSSecretsManagerSpec is an AWSSecretsManagerSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple' || (has(self.authenticationScope) && self.authenticationScope == 'ManifestNamespace')",message="sessionTagsPolicy: Simple needs authenticationScope: ManifestNamespace, with which each namespace has its own session"
type ClusterAWSSecretsManagerSpec struct {
	AWSSecretsManagerSpec   `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}

// ClusterAWSSecretsManagerList is a list of ClusterAWSSecretsManagers.
//
// +kubebuilder:object:root=true
type ClusterAWSSecretsManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterAWSSecretsManager `json:"items"`
}

// StoreSpec returns the embedded spec.
func (s *AWSSecretsManager) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// AWS returns the embedded spec.
func (s *AWSSecretsManager) AWS() *AWSSpec { return &s.Spec.AWSSpec }

// KeySpec returns the embedded spec.
func (s *AWSSecretsManager) KeySpec() *KeySpec { return &s.Spec.KeySpec }

// Deletion says how secrets are deleted.
func (s *AWSSecretsManager) Deletion() *AWSSecretsManagerDeletion { return s.Spec.Deletion }

// StoreSpec returns the embedded spec.
func (s *ClusterAWSSecretsManager) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// ClusterStoreSpec returns the embedded spec.
func (s *ClusterAWSSecretsManager) ClusterStoreSpec() *common.ClusterStoreSpec {
	return &s.Spec.ClusterStoreSpec
}

// AWS returns the embedded spec.
func (s *ClusterAWSSecretsManager) AWS() *AWSSpec { return &s.Spec.AWSSpec }

// KeySpec returns the embedded spec.
func (s *ClusterAWSSecretsManager) KeySpec() *KeySpec { return &s.Spec.KeySpec }

// Deletion says how secrets are deleted.
func (s *ClusterAWSSecretsManager) Deletion() *AWSSecretsManagerDeletion {
	return s.Spec.Deletion
}
