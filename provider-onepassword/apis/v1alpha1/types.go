package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// OnePasswordConnect is a store: the items of vaults of 1Password, read and written through a Connect server.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.connectHost`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type OnePasswordConnect struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OnePasswordConnectSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

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

// OnePasswordConnectList is a list of OnePasswordConnects.
//
// +kubebuilder:object:root=true
type OnePasswordConnectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OnePasswordConnect `json:"items"`
}

// ClusterOnePasswordConnect is a OnePasswordConnect that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.connectHost`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterOnePasswordConnect struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterOnePasswordConnectSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterOnePasswordConnectSpec is a OnePasswordConnectSpec with conditions for namespaces.
type ClusterOnePasswordConnectSpec struct {
	OnePasswordConnectSpec  `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}

// ClusterOnePasswordConnectList is a list of ClusterOnePasswordConnects.
//
// +kubebuilder:object:root=true
type ClusterOnePasswordConnectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterOnePasswordConnect `json:"items"`
}

// StoreSpec returns the embedded spec.
func (s *OnePasswordConnect) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// StoreSpec returns the embedded spec.
func (s *ClusterOnePasswordConnect) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// ClusterStoreSpec returns the embedded spec.
func (s *ClusterOnePasswordConnect) ClusterStoreSpec() *common.ClusterStoreSpec {
	return &s.Spec.ClusterStoreSpec
}
