package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// FakeStore is a store whose secrets are kept in the memory of a test.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=direct-secrets
// +kubebuilder:printcolumn:name="Backend",type=string,JSONPath=`.spec.backend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type FakeStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FakeStoreSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// FakeStoreList is a list of FakeStores.
//
// +kubebuilder:object:root=true
type FakeStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FakeStore `json:"items"`
}

// OtherFakeStore is a FakeStore for another module, so that a test can have two.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=direct-secrets
type OtherFakeStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FakeStoreSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// OtherFakeStoreList is a list of OtherFakeStores.
//
// +kubebuilder:object:root=true
type OtherFakeStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OtherFakeStore `json:"items"`
}

// ClusterFakeStore is a FakeStore that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=direct-secrets
// +kubebuilder:printcolumn:name="Backend",type=string,JSONPath=`.spec.backend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterFakeStore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterFakeStoreSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterFakeStoreList is a list of ClusterFakeStores.
//
// +kubebuilder:object:root=true
type ClusterFakeStoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterFakeStore `json:"items"`
}

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

// ClusterFakeStoreSpec is a FakeStoreSpec that says whom it serves.
type ClusterFakeStoreSpec struct {
	FakeStoreSpec           `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}

// FakeAuth holds the password of a backend.
type FakeAuth struct {
	// Key of a Secret that holds the password.
	SecretRef common.SecretKeySelector `json:"secretRef"`
}

// StoreSpec returns the embedded spec.
func (s *FakeStore) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// StoreSpec returns the embedded spec.
func (s *OtherFakeStore) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// StoreSpec returns the embedded spec.
func (s *ClusterFakeStore) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// ClusterStoreSpec returns the embedded spec.
func (s *ClusterFakeStore) ClusterStoreSpec() *common.ClusterStoreSpec {
	return &s.Spec.ClusterStoreSpec
}
