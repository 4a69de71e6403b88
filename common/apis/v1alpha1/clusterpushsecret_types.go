package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterPushSecret creates the same PushSecret in many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=dcps,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterPushSecret struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterPushSecretSpec `json:"spec"`
	// Status that the operator reports. observedGeneration is -1 until the operator has reconciled the object.
	// +kubebuilder:default={"observedGeneration":-1}
	Status FanOutStatus `json:"status,omitempty"`
}

// ClusterPushSecretList is a list of ClusterPushSecrets.
//
// +kubebuilder:object:root=true
type ClusterPushSecretList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterPushSecret `json:"items"`
}

// ClusterPushSecretSpec describes the PushSecrets to create, and their namespaces.
type ClusterPushSecretSpec struct {
	// The spec of each PushSecret.
	PushSecretSpec PushSecretSpec `json:"pushSecretSpec"`

	// Name of each PushSecret. Default: the name of this object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PushSecretName string `json:"pushSecretName,omitempty"`

	// Labels and annotations of each PushSecret.
	// +optional
	PushSecretMetadata TemplateMetadata `json:"pushSecretMetadata,omitzero"`

	NamespaceChoice `json:",inline"`
}

// NamespaceChoice selects namespaces. A namespace is selected if it matches any field.
type NamespaceChoice struct {
	// Labels of the namespaces; {} matches all.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`

	// Names of the namespaces.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
}

// FanOutStatus lists the namespaces in which an object was created.
type FanOutStatus struct {
	// Generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Namespaces in which the object matches the spec.
	// +optional
	// +listType=set
	ProvisionedNamespaces []string `json:"provisionedNamespaces,omitempty"`

	// Namespaces in which the object could not be created, and why.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	FailedNamespaces []NamespaceFailure `json:"failedNamespaces,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NamespaceFailure is a namespace in which an object could not be created, and why.
type NamespaceFailure struct {
	Namespace string `json:"namespace"`
	Message   string `json:"message"`
}

// Reasons of the Ready condition of an object that is made in many namespaces.
const (
	ReasonProvisioned         = "Provisioned"
	ReasonPartlyProvisioned   = "PartlyProvisioned"
	ReasonNoNamespacesMatched = "NoNamespacesMatched"
)
