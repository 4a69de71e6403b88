package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AWSParameterStore is a store: AWS Systems Manager Parameter Store in one region, used as one
// identity.
//
// +direct-secrets:store:shortName=awsps,get=AWS:AWSSpec;KeySpec
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`

// AWSParameterStoreSpec describes where the parameters are, and how to log in.
type AWSParameterStoreSpec struct {
	common.StoreSpec `json:",inline"`
	AWSSpec          `json:",inline"`
	KeySpec          `json:",inline"`
}

// ClusterAWSParameterStoreSpec is an AWSParameterStoreSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple' || (has(self.authenticationScope) && self.authenticationScope == 'ManifestNamespace')",message="sessionTagsPolicy: Simple needs authenticationScope: ManifestNamespace, with which each namespace has its own session"
type ClusterAWSParameterStoreSpec struct {
	AWSParameterStoreSpec   `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}
