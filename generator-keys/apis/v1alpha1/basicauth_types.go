package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// BasicAuth is a generator of logins for HTTP basic authentication.
//
// +direct-secrets:generator:shortName=basic,get=Settings:BasicAuthSettings
// +kubebuilder:printcolumn:name="User",type=string,priority=1,JSONPath=`.spec.username`

// BasicAuthSpec describes the logins, and when they are replaced.
type BasicAuthSpec struct {
	common.GeneratorSpec `json:",inline"`
	BasicAuthSettings    `json:",inline"`
}

// BasicAuthSettings describe the logins.
type BasicAuthSettings struct {
	// Name of the user.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-9;-~]+$') && !self.startsWith('#')",message="username must be printable ASCII characters without spaces and colons, and must not begin with #"
	Username string `json:"username"`

	// Number of characters of the password: capital letters and the digits 2 to 7. Default 26.
	// +optional
	// +kubebuilder:validation:Maximum=72
	// +kubebuilder:validation:XValidation:rule="self >= 13",message="length must be at least 13: shorter passwords have less than 64 bits of entropy"
	Length int32 `json:"length,omitempty"`

	// Cost of the bcrypt hash; each step doubles the time of a login. Default 10.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=12
	Cost int32 `json:"cost,omitempty"`
}
