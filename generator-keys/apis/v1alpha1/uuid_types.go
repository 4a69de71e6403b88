package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// UUID is a generator of random UUIDs, such as the identifier of an installation.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=uuid,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type UUID struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec UUIDSpec `json:"spec,omitzero"`

	common.StatusSubresource `json:",inline"`
}

// UUIDList is a list of UUIDs.
//
// +kubebuilder:object:root=true
type UUIDList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []UUID `json:"items"`
}

// ClusterUUID is a UUID that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cuuid,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterUUID struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterUUIDSpec `json:"spec,omitzero"`

	common.StatusSubresource `json:",inline"`
}

// ClusterUUIDList is a list of ClusterUUIDs.
//
// +kubebuilder:object:root=true
type ClusterUUIDList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterUUID `json:"items"`
}

// UUIDSpec describes the UUIDs, and when they are replaced.
type UUIDSpec struct {
	common.GeneratorSpec `json:",inline"`
}

// ClusterUUIDSpec is a UUIDSpec with conditions for namespaces.
type ClusterUUIDSpec struct {
	UUIDSpec                    `json:",inline"`
	common.ClusterGeneratorSpec `json:",inline"`
}

// GeneratorSpec returns the embedded spec.
func (g *UUID) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// GeneratorSpec returns the embedded spec.
func (g *ClusterUUID) GeneratorSpec() *common.GeneratorSpec { return &g.Spec.GeneratorSpec }

// ClusterStoreSpec returns the embedded spec as that of a store.
func (g *ClusterUUID) ClusterStoreSpec() *common.ClusterStoreSpec {
	return g.Spec.AsStore(common.ScopeSpec{})
}
