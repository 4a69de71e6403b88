package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EventSourceSpec is embedded by every event source Kind.
type EventSourceSpec struct {
	SourceSpec `json:",inline"`
}

// ClusterEventSourceSpec is embedded by the cluster Kind of every event source. It limits the namespaces whose objects the
// event source refreshes.
type ClusterEventSourceSpec struct {
	// Namespaces whose objects are refreshed: those that match an entry. Unset: all namespaces.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Conditions []NamespaceCondition `json:"conditions,omitempty"`
}

// AsStore returns the spec of a store that serves the same namespaces.
func (s ClusterEventSourceSpec) AsStore() *ClusterStoreSpec {
	return ClusterGeneratorSpec(s).AsStore(ScopeSpec{})
}

// EventSourceSubresource is embedded by every event source Kind.
type EventSourceSubresource struct {
	// Status that the operator reports. observedGeneration is -1 until the operator has reconciled the object.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EventSourceStatus `json:"status,omitzero"`
}

// StoreStatus returns the part of the status that every store has.
func (s *EventSourceSubresource) StoreStatus() *StoreStatus { return &s.Status.StoreStatus }

// Received returns the part of the status about events.
func (s *EventSourceSubresource) Received() *ReceivedEvents { return &s.Status.ReceivedEvents }

// EventSourceStatus is the status of an event source.
type EventSourceStatus struct {
	StoreStatus    `json:",inline"`
	ReceivedEvents `json:",inline"`
}

// ReceivedEvents count the events of an event source. They are written at most every ten seconds, and are approximate: a crash
// loses the last ones, and a queue can deliver one event twice.
type ReceivedEvents struct {
	// Time at which the last event was received.
	// +optional
	LastEventTime *metav1.Time `json:"lastEventTime,omitempty"`

	// Number of messages that were received.
	// +optional
	ReceivedEvents int64 `json:"receivedEvents,omitempty"`

	// Number of messages that named a secret which an object reads or pushes.
	// +optional
	MatchedEvents int64 `json:"matchedEvents,omitempty"`

	// Number of messages that were no event of a secret.
	// +optional
	MalformedEvents int64 `json:"malformedEvents,omitempty"`

	// Time at which polling last found a change of a secret whose change before was reported, but not this one.
	// +optional
	LastMissedTime *metav1.Time `json:"lastMissedTime,omitempty"`
}
