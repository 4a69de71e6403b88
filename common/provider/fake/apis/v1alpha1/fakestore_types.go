package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// FakeStore is a store whose secrets are kept in the memory of a test.
//
// +direct-secrets:store
// +kubebuilder:printcolumn:name="Backend",type=string,JSONPath=`.spec.backend`

// OtherFakeStore is a FakeStore for another module, so that a test can have two.
//
// +direct-secrets:store:noCluster

// FakeStoreSpec says which backend a store reads, and as whom.
type FakeStoreSpec struct {
	common.StoreSpec `json:",inline"`

	// Name of the backend that the test has set up.
	// +kubebuilder:validation:MaxLength=253
	Backend string `json:"backend"`

	// Credentials. Unset: none, or the operator's own with ambient.
	// +optional
	Auth *FakeAuth `json:"auth,omitempty"`

	// Use the operator's own identity, which every backend accepts. Auth wins over it.
	// +optional
	Ambient bool `json:"ambient,omitempty"`
}

// FakeAuth holds the password of a backend.
type FakeAuth struct {
	// Key of a Secret that holds the password.
	SecretRef common.SecretKeySelector `json:"secretRef"`
}
