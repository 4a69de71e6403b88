package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterExternalSecret creates the same ExternalSecret in many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=dces,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterExternalSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterExternalSecretSpec `json:"spec"`
	// Status that the operator reports. observedGeneration is -1 until the operator has reconciled the object.
	// +kubebuilder:default={"observedGeneration":-1}
	Status FanOutStatus `json:"status,omitempty"`
}

// ClusterExternalSecretList is a list of ClusterExternalSecrets.
//
// +kubebuilder:object:root=true
type ClusterExternalSecretList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterExternalSecret `json:"items"`
}

// ClusterExternalSecretSpec describes the ExternalSecrets to create, and their namespaces.
type ClusterExternalSecretSpec struct {
	// The spec of each ExternalSecret.
	ExternalSecretSpec ExternalSecretSpec `json:"externalSecretSpec"`

	// Name of each ExternalSecret. Default: the name of this object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ExternalSecretName string `json:"externalSecretName,omitempty"`

	// Labels and annotations of each ExternalSecret.
	// +optional
	ExternalSecretMetadata TemplateMetadata `json:"externalSecretMetadata,omitzero"`

	NamespaceChoice `json:",inline"`
}
