package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// FakeGenerator makes credentials that the memory of a test knows.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type FakeGenerator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FakeGeneratorSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// FakeGeneratorList is a list of FakeGenerators.
//
// +kubebuilder:object:root=true
type FakeGeneratorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FakeGenerator `json:"items"`
}

// ClusterFakeGenerator is a FakeGenerator that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterFakeGenerator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterFakeGeneratorSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterFakeGeneratorList is a list of ClusterFakeGenerators.
//
// +kubebuilder:object:root=true
type ClusterFakeGeneratorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterFakeGenerator `json:"items"`
}

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

// ClusterFakeGeneratorSpec is a FakeGeneratorSpec that says whom it serves.
type ClusterFakeGeneratorSpec struct {
	FakeGeneratorSpec           `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
	common.ScopeSpec            `json:",inline"`
}

// GeneratorSpec returns the embedded spec.
func (g *FakeGenerator) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// GeneratorSpec returns the embedded spec.
func (g *ClusterFakeGenerator) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// ClusterStoreSpec returns the embedded spec as that of a store.
func (g *ClusterFakeGenerator) ClusterStoreSpec() *common.ClusterStoreSpec {
	return g.Spec.AsStore(g.Spec.ScopeSpec)
}
