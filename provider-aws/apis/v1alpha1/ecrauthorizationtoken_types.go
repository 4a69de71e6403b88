package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// ECRAuthorizationToken is a generator of logins for the container registries of AWS.
//
// +direct-secrets:generator:shortName=ecrtoken,login,get=AWS:AWSSpec;Scope
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`

// ECRAuthorizationTokenSpec describes the registries, and how to log in to AWS.
type ECRAuthorizationTokenSpec struct {
	common.GeneratorSpec `json:",inline"`
	AWSSpec              `json:",inline"`

	// Registries of the login. private (the default): those of the region. public: public.ecr.aws.
	// +optional
	Scope ECRScope `json:"scope,omitempty"`
}

// ECRScope is the type of the registries: private or public.
//
// +kubebuilder:validation:Enum="";private;public
type ECRScope string

// The scopes of an ECRAuthorizationToken.
const (
	ECRPrivate ECRScope = "private"
	ECRPublic  ECRScope = "public"
)

// ClusterECRAuthorizationTokenSpec is an ECRAuthorizationTokenSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple' || (has(self.authenticationScope) && self.authenticationScope == 'ManifestNamespace')",message="sessionTagsPolicy: Simple needs authenticationScope: ManifestNamespace, with which each namespace has its own session"
type ClusterECRAuthorizationTokenSpec struct {
	ECRAuthorizationTokenSpec   `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
	common.ScopeSpec            `json:",inline"`
}
