package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// STSSessionToken is a generator of temporary AWS access keys for a user or a role.
//
// +direct-secrets:generator:shortName=ststoken,login,get=AWS:AWSSpec;RequestParameters
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`

// STSSessionTokenSpec describes the user or role of the access keys.
//
// +kubebuilder:validation:XValidation:rule="(has(self.role) && size(self.role) > 0) || !has(self.auth) || !has(self.auth.secretRef) || !has(self.auth.secretRef.sessionTokenSecretRef)",message="auth.secretRef.sessionTokenSecretRef needs a role: AWS creates no session tokens for a temporary access key"
// +kubebuilder:validation:XValidation:rule="!has(self.requestParameters) || !has(self.requestParameters.sessionDuration) || self.requestParameters.sessionDuration <= ((has(self.additionalRoles) && size(self.additionalRoles) > 0) ? 3600 : ((has(self.role) && size(self.role) > 0) || (has(self.auth) && has(self.auth.serviceAccountRef))) ? 43200 : 129600)",message="requestParameters.sessionDuration is at most 129600, 43200 with role, and 3600 with additionalRoles"
// +kubebuilder:validation:XValidation:rule="!has(self.requestParameters) || !has(self.requestParameters.serialNumber) || size(self.requestParameters.serialNumber) == 0 || !((has(self.additionalRoles) && size(self.additionalRoles) > 0) || (has(self.auth) && has(self.auth.serviceAccountRef)))",message="requestParameters.serialNumber is the MFA device of a user, and cannot be used with additionalRoles or auth.serviceAccountRef"
// +kubebuilder:validation:XValidation:rule="!has(self.requestParameters) || !has(self.requestParameters.tokenCode) || size(self.requestParameters.tokenCode) == 0 || !has(self.rotationInterval) || size(self.rotationInterval) == 0",message="requestParameters.tokenCode works only once, so a rotation would fail; remove rotationInterval"
type STSSessionTokenSpec struct {
	common.GeneratorSpec `json:",inline"`
	AWSSpec              `json:",inline"`

	// Parameters of the request to STS.
	// +optional
	RequestParameters *STSRequestParameters `json:"requestParameters,omitempty"`
}

// STSRequestParameters are parameters of the request to STS.
//
// +kubebuilder:validation:XValidation:rule="(has(self.serialNumber) && size(self.serialNumber) > 0) == (has(self.tokenCode) && size(self.tokenCode) > 0)",message="set both serialNumber and tokenCode, or none"
type STSRequestParameters struct {
	// Lifetime of the access keys, in seconds. Default 43200; with role 3600.
	// +optional
	// +kubebuilder:validation:Minimum=900
	// +kubebuilder:validation:Maximum=129600
	SessionDuration int32 `json:"sessionDuration,omitempty"`

	// The MFA device of the user: its serial number or ARN.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[\w+=/:,.@-]*$`
	SerialNumber string `json:"serialNumber,omitempty"`

	// The six digits that the MFA device shows. They work once, for about a minute. So they create access keys for one
	// object only, and each further access key needs a new code.
	// +optional
	// +kubebuilder:validation:MaxLength=6
	// +kubebuilder:validation:Pattern=`^([0-9]{6})?$`
	TokenCode string `json:"tokenCode,omitempty"`
}

// ClusterSTSSessionTokenSpec is an STSSessionTokenSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple' || (has(self.authenticationScope) && self.authenticationScope == 'ManifestNamespace')",message="sessionTagsPolicy: Simple needs authenticationScope: ManifestNamespace, with which each namespace has its own session"
type ClusterSTSSessionTokenSpec struct {
	STSSessionTokenSpec         `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
	common.ScopeSpec            `json:",inline"`
}
