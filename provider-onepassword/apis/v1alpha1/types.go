package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// OnePasswordConnect is a store: the items of vaults of 1Password, read and written through a Connect server.
//
// +direct-secrets:store
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.connectHost`

// OnePasswordConnectSpec describes where the items are, and how to log in.
type OnePasswordConnectSpec struct {
	common.StoreSpec `json:",inline"`

	// URL of the Connect server, for example https://connect.example.com. It must begin with https, except on the operator's own
	// host, or with allowPlainHTTP.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]')",message="connectHost must be a URL, such as https://connect.example.com"
	ConnectHost string `json:"connectHost"`

	// If true, connectHost can begin with http. Set it only if the network protects the traffic, for example in a service mesh:
	// anyone who can read the traffic can read the token and all values.
	// +optional
	AllowPlainHTTP bool `json:"allowPlainHTTP,omitempty"`

	common.Authorities `json:",inline"`

	// Names or IDs of the vaults, in the order in which they are searched. An item is that of the first vault that has its title.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	Vaults []string `json:"vaults"`

	// How to log in.
	Auth OnePasswordConnectAuth `json:"auth"`
}

// OnePasswordConnectAuth describes how to log in.
type OnePasswordConnectAuth struct {
	// Login with the token of a Connect server.
	SecretRef OnePasswordConnectSecretRef `json:"secretRef"`
}

// OnePasswordConnectSecretRef is the token of a Connect server.
type OnePasswordConnectSecretRef struct {
	// Key of a Secret that holds the token.
	ConnectTokenSecretRef common.SecretKeySelector `json:"connectTokenSecretRef"`
}
