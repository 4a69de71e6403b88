package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// GCPAccessToken is a generator of Google Cloud access tokens for one identity.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gcptoken,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type GCPAccessToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GCPAccessTokenSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// GCPAccessTokenList is a list of GCPAccessTokens.
//
// +kubebuilder:object:root=true
type GCPAccessTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GCPAccessToken `json:"items"`
}

// ClusterGCPAccessToken is a GCPAccessToken that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cgcptoken,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterGCPAccessToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterGCPAccessTokenSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterGCPAccessTokenList is a list of ClusterGCPAccessTokens.
//
// +kubebuilder:object:root=true
type ClusterGCPAccessTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterGCPAccessToken `json:"items"`
}

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

// ClusterGCPAccessTokenSpec is a GCPAccessTokenSpec with conditions for namespaces.
type ClusterGCPAccessTokenSpec struct {
	GCPAccessTokenSpec          `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
	common.ScopeSpec            `json:",inline"`
}

// GeneratorSpec returns the embedded spec.
func (g *GCPAccessToken) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// GeneratorSpec returns the embedded spec.
func (g *ClusterGCPAccessToken) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// ClusterStoreSpec returns the embedded spec as that of a store.
func (g *ClusterGCPAccessToken) ClusterStoreSpec() *common.ClusterStoreSpec {
	return g.Spec.AsStore(g.Spec.ScopeSpec)
}
