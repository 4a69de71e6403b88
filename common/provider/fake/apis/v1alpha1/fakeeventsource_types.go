package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// FakeEventSource receives messages from the queue of a backend.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type FakeEventSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FakeEventSourceSpec `json:"spec"`

	common.EventSourceSubresource `json:",inline"`
}

// FakeEventSourceList is a list of FakeEventSources.
//
// +kubebuilder:object:root=true
type FakeEventSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FakeEventSource `json:"items"`
}

// ClusterFakeEventSource is a FakeEventSource for many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterFakeEventSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterFakeEventSourceSpec `json:"spec"`

	common.EventSourceSubresource `json:",inline"`
}

// ClusterFakeEventSourceList is a list of ClusterFakeEventSources.
//
// +kubebuilder:object:root=true
type ClusterFakeEventSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterFakeEventSource `json:"items"`
}

// FakeEventSourceSpec names the backend with the queue.
type FakeEventSourceSpec struct {
	common.EventSourceSpec `json:",inline"`

	// Name of the backend that the test has set up.
	// +kubebuilder:validation:MaxLength=253
	Backend string `json:"backend"`
}

// ClusterFakeEventSourceSpec is a FakeEventSourceSpec with conditions for namespaces.
type ClusterFakeEventSourceSpec struct {
	FakeEventSourceSpec           `json:",inline"`
	common.ClusterEventSourceSpec `json:",inline"`
}

// EventSourceSpec returns the embedded spec.
func (s *FakeEventSource) EventSourceSpec() *common.EventSourceSpec { return &s.Spec.EventSourceSpec }

// EventSourceSpec returns the embedded spec.
func (s *ClusterFakeEventSource) EventSourceSpec() *common.EventSourceSpec {
	return &s.Spec.EventSourceSpec
}

// ClusterStoreSpec returns the embedded spec as that of a store.
func (s *ClusterFakeEventSource) ClusterStoreSpec() *common.ClusterStoreSpec { return s.Spec.AsStore() }
