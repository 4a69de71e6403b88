package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// BasicAuth is a generator of logins for HTTP basic authentication.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=basic,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="User",type=string,priority=1,JSONPath=`.spec.username`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type BasicAuth struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BasicAuthSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// BasicAuthList is a list of BasicAuths.
//
// +kubebuilder:object:root=true
type BasicAuthList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BasicAuth `json:"items"`
}

// ClusterBasicAuth is a BasicAuth that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cbasic,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="User",type=string,priority=1,JSONPath=`.spec.username`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterBasicAuth struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterBasicAuthSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterBasicAuthList is a list of ClusterBasicAuths.
//
// +kubebuilder:object:root=true
type ClusterBasicAuthList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterBasicAuth `json:"items"`
}

// BasicAuthSpec describes the logins, and when they are replaced.
type BasicAuthSpec struct {
	common.GeneratorSpec `json:",inline"`
	BasicAuthSettings    `json:",inline"`
}

// ClusterBasicAuthSpec is a BasicAuthSpec with conditions for namespaces.
type ClusterBasicAuthSpec struct {
	BasicAuthSpec               `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
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

// GeneratorSpec returns the embedded spec.
func (g *BasicAuth) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// Settings returns the embedded settings.
func (g *BasicAuth) Settings() *BasicAuthSettings { return &g.Spec.BasicAuthSettings }

// GeneratorSpec returns the embedded spec.
func (g *ClusterBasicAuth) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// ClusterStoreSpec returns the embedded spec as that of a store.
func (g *ClusterBasicAuth) ClusterStoreSpec() *common.ClusterStoreSpec {
	return g.Spec.AsStore(common.ScopeSpec{})
}

// Settings returns the embedded settings.
func (g *ClusterBasicAuth) Settings() *BasicAuthSettings { return &g.Spec.BasicAuthSettings }
