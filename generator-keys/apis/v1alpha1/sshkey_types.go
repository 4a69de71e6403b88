package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// SSHKey is a generator of key pairs for SSH.
//
// +direct-secrets:generator:shortName=sshk,optional,get=Settings:SSHKeySettings
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.keyType`

// SSHKeySpec describes the key pairs, and when they are replaced.
type SSHKeySpec struct {
	common.GeneratorSpec `json:",inline"`
	SSHKeySettings       `json:",inline"`
}

// SSHKeySettings describe the key pairs.
type SSHKeySettings struct {
	KeySettings `json:",inline"`

	// Comment of the public key, such as the name of the user.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^[:cntrl:]]*)$')",message="comment must be one line without control characters"
	Comment string `json:"comment,omitempty"`
}
