package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// ECRAuthorizationToken is a generator of logins for the container registries of AWS.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ecrtoken,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ECRAuthorizationToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ECRAuthorizationTokenSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ECRAuthorizationTokenSpec describes the registries, and how to log in to AWS.
type ECRAuthorizationTokenSpec struct {
	common.GeneratorSpec `json:",inline"`
	AWSSpec              `json:",inline"`

	// Registries of the login. private (the default): those of the region. public: public.ecr.aws.
	// +optional
	Scope ECRScope `json:"scope,omitempty"`
}

// ECRScope is the type of the registries: private or public.
//
// +kubebuilder:validation:Enum="";private;public
type ECRScope string

// The scopes of an ECRAuthorizationToken.
const (
	ECRPrivate ECRScope = "private"
	ECRPublic  ECRScope = "public"
)

// ECRAuthorizationTokenList is a list of ECRAuthorizationTokens.
//
// +kubebuilder:object:root=true
type ECRAuthorizationTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ECRAuthorizationToken `json:"items"`
}

// ClusterECRAuthorizationToken is an ECRAuthorizationToken that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cecrtoken,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterECRAuthorizationToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterECRAuthorizationTokenSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterECRAuthorizationTokenSpec is an ECRAuthorizationTokenSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple' || (has(self.authenticationScope) && self.authenticationScope == 'ManifestNamespace')",message="sessionTagsPolicy: Simple needs authenticationScope: ManifestNamespace, with which each namespace has its own session"
type ClusterECRAuthorizationTokenSpec struct {
	ECRAuthorizationTokenSpec   `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
	common.ScopeSpec            `json:",inline"`
}

// ClusterECRAuthorizationTokenList is a list of ClusterECRAuthorizationTokens.
//
// +kubebuilder:object:root=true
type ClusterECRAuthorizationTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterECRAuthorizationToken `json:"items"`
}

// GeneratorSpec returns the embedded spec.
func (g *ECRAuthorizationToken) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// AWS returns the embedded spec.
func (g *ECRAuthorizationToken) AWS() *AWSSpec { return &g.Spec.AWSSpec }

// Scope returns the registries that a login is for.
func (g *ECRAuthorizationToken) Scope() ECRScope { return g.Spec.Scope }

// GeneratorSpec returns the embedded spec.
func (g *ClusterECRAuthorizationToken) GeneratorSpec() *common.GeneratorSpec {
	return &g.Spec.GeneratorSpec
}

// ClusterStoreSpec returns the embedded spec as that of a store.
func (g *ClusterECRAuthorizationToken) ClusterStoreSpec() *common.ClusterStoreSpec {
	return g.Spec.AsStore(g.Spec.ScopeSpec)
}

// AWS returns the embedded spec.
func (g *ClusterECRAuthorizationToken) AWS() *AWSSpec { return &g.Spec.AWSSpec }

// Scope returns the registries that a login is for.
func (g *ClusterECRAuthorizationToken) Scope() ECRScope { return g.Spec.Scope }
