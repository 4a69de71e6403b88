package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// GCPSecretManager is a store: Google Secret Manager in one project, used as one identity.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gcpsm,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectID`
// +kubebuilder:printcolumn:name="Location",type=string,priority=1,JSONPath=`.spec.location`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type GCPSecretManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GCPSecretManagerSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// GCPSecretManagerList is a list of GCPSecretManagers.
//
// +kubebuilder:object:root=true
type GCPSecretManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GCPSecretManager `json:"items"`
}

// ClusterGCPSecretManager is a GCPSecretManager that serves many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cgcpsm,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.projectID`
// +kubebuilder:printcolumn:name="Location",type=string,priority=1,JSONPath=`.spec.location`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterGCPSecretManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterGCPSecretManagerSpec `json:"spec"`

	common.StatusSubresource `json:",inline"`
}

// ClusterGCPSecretManagerList is a list of ClusterGCPSecretManagers.
//
// +kubebuilder:object:root=true
type ClusterGCPSecretManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterGCPSecretManager `json:"items"`
}

// GCPSecretManagerSpec describes where the secrets are, and how to log in.
type GCPSecretManagerSpec struct {
	common.StoreSpec `json:",inline"`
	GCPSpec          `json:",inline"`
}

// ClusterGCPSecretManagerSpec is a GCPSecretManagerSpec with conditions for namespaces.
type ClusterGCPSecretManagerSpec struct {
	GCPSecretManagerSpec    `json:",inline"`
	common.ClusterStoreSpec `json:",inline"`
}

// StoreSpec returns the embedded spec.
func (s *GCPSecretManager) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// GCP returns the embedded spec.
func (s *GCPSecretManager) GCP() *GCPSpec { return &s.Spec.GCPSpec }

// StoreSpec returns the embedded spec.
func (s *ClusterGCPSecretManager) StoreSpec() *common.StoreSpec { return &s.Spec.StoreSpec }

// ClusterStoreSpec returns the embedded spec.
func (s *ClusterGCPSecretManager) ClusterStoreSpec() *common.ClusterStoreSpec {
	return &s.Spec.ClusterStoreSpec
}

// GCP returns the embedded spec.
func (s *ClusterGCPSecretManager) GCP() *GCPSpec { return &s.Spec.GCPSpec }
