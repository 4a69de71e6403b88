package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// FakeGenerator makes credentials that the memory of a test knows.
//
// +direct-secrets:generator:login

// FakeGeneratorSpec says which backend makes the credentials, and of what kind.
type FakeGeneratorSpec struct {
	common.GeneratorSpec  `json:",inline"`
	common.RevocationSpec `json:",inline"`

	// Name of the backend that the test has set up.
	// +kubebuilder:validation:MaxLength=253
	Backend string `json:"backend"`

	// Prefix of the values.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Prefix string `json:"prefix,omitempty"`

	// How long credentials live. Unset: for ever, and then nothing is to be revoked.
	// +optional
	TTL common.Duration `json:"ttl,omitempty"`

	// Credentials. Unset: none.
	// +optional
	Auth *FakeAuth `json:"auth,omitempty"`
}
