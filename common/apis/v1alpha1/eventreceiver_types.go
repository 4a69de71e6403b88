package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EventReceiver receives signed HTTP requests about changed secrets. The objects of its namespace that read or push them are then
// refreshed at once. The module that serves the Kinds of its stores serves it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=evr,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last event",type=date,JSONPath=`.status.lastEventTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type EventReceiver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EventReceiverSpec `json:"spec"`

	EventSourceSubresource `json:",inline"`
}

// EventReceiverSpec names the key of the signatures, and the stores whose secrets the requests name.
type EventReceiverSpec struct {
	EventSourceSpec `json:",inline"`

	// Key of a Secret with at least 32 bytes, by which requests are signed with HMAC-SHA256.
	SecretRef SecretKeySelector `json:"secretRef"`

	// Stores whose secrets the requests name. All Kinds must be those of one module.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Stores []EventStoreRef `json:"stores"`
}

// EventStoreRef names a store by Kind and name.
type EventStoreRef struct {
	// Kind of the store, for example VaultKV or ClusterVaultKV.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`

	// Name of the store. A namespaced Kind is that of the namespace; of a ClusterEventReceiver, that of each namespace which it reaches.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
}

// EventReceiverList is a list of EventReceivers.
//
// +kubebuilder:object:root=true
type EventReceiverList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EventReceiver `json:"items"`
}

// ClusterEventReceiver is an EventReceiver for the objects of many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cevr,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last event",type=date,JSONPath=`.status.lastEventTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterEventReceiver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterEventReceiverSpec `json:"spec"`

	EventSourceSubresource `json:",inline"`
}

// ClusterEventReceiverSpec is an EventReceiverSpec with conditions for namespaces.
type ClusterEventReceiverSpec struct {
	EventReceiverSpec      `json:",inline"`
	ClusterEventSourceSpec `json:",inline"`
}

// ClusterEventReceiverList is a list of ClusterEventReceivers.
//
// +kubebuilder:object:root=true
type ClusterEventReceiverList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterEventReceiver `json:"items"`
}

// EventSourceSpec returns the embedded spec.
func (r *EventReceiver) EventSourceSpec() *EventSourceSpec { return &r.Spec.EventSourceSpec }

// EventReceiverSpec returns the spec.
func (r *EventReceiver) EventReceiverSpec() *EventReceiverSpec { return &r.Spec }

// EventSourceSpec returns the embedded spec.
func (r *ClusterEventReceiver) EventSourceSpec() *EventSourceSpec { return &r.Spec.EventSourceSpec }

// EventReceiverSpec returns the embedded spec.
func (r *ClusterEventReceiver) EventReceiverSpec() *EventReceiverSpec {
	return &r.Spec.EventReceiverSpec
}

// ClusterStoreSpec returns the embedded spec as that of a store.
func (r *ClusterEventReceiver) ClusterStoreSpec() *ClusterStoreSpec { return r.Spec.AsStore() }
