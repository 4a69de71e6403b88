package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// GCPAccessToken is a generator of Google Cloud access tokens for one identity.
//
// +direct-secrets:generator:shortName=gcptoken,login

// GCPAccessTokenSpec describes the identity and the scopes of the tokens.
type GCPAccessTokenSpec struct {
	common.GeneratorSpec `json:",inline"`
	common.RetrySpec     `json:",inline"`

	// Scopes of the tokens. Unset: https://www.googleapis.com/auth/cloud-platform, which includes all permissions of
	// the identity.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9._~:/+-]+$`
	Scopes []string `json:"scopes,omitempty"`

	// URL of an emulator to use instead of Google. It must be on the operator's own host (127.0.0.1, localhost).
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^https?://[^/]')",message="endpoint must be a URL, such as http://127.0.0.1:8080"
	Endpoint string `json:"endpoint,omitempty"`

	// Identity of the tokens. Unset: the operator's own identity, if the chart value ambientCredentials allows it.
	// +optional
	Auth *GCPAuth `json:"auth,omitempty"`
}
