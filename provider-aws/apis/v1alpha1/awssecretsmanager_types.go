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
type AWSSecretsManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AWSSecretsManagerSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// AWSSecretsManagerSpec says where the secrets are, and how to log in.
type AWSSecretsManagerSpec struct {
	common.StoreSpec `json:",inline"`
	AWSSpec          `json:",inline"`
	KeySpec          `json:",inline"`

	// How secrets are deleted that a PushSecret created. Unset: with a recovery window of 30 days.
	// +optional
	SecretsManager *AWSSecretsManagerDeletion `json:"secretsManager,omitempty"`
}

// AWSSecretsManagerDeletion says how secrets are deleted.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.forceDeleteWithoutRecovery) && self.forceDeleteWithoutRecovery && has(self.recoveryWindowInDays))",message="set either forceDeleteWithoutRecovery or recoveryWindowInDays"
type AWSSecretsManagerDeletion struct {
	// Deletes at once and for good.
	// +optional
	ForceDeleteWithoutRecovery bool `json:"forceDeleteWithoutRecovery,omitempty"`

	// How many days a deleted secret can be restored; AWS takes 7 to 30.
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
type ClusterAWSSecretsManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterAWSSecretsManagerSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterAWSSecretsManagerSpec is an AWSSecretsManagerSpec that says whom it serves.
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
func (s *AWSSecretsManager) Deletion() *AWSSecretsManagerDeletion { return s.Spec.SecretsManager }

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
	return s.Spec.SecretsManager
}
