package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AWSSecretsManager is a store: AWS Secrets Manager in one region, used as one identity.
//
// +direct-secrets:store:shortName=awssm,get=AWS:AWSSpec;KeySpec;Deletion
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`

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

// ClusterAWSSecretsManagerSpec is an AWSSecretsManagerSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple' || (has(self.authenticationScope) && self.authenticationScope == 'ManifestNamespace')",message="sessionTagsPolicy: Simple needs authenticationScope: ManifestNamespace, with which each namespace has its own session"
type ClusterAWSSecretsManagerSpec struct {
	AWSSecretsManagerSpec   `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}
