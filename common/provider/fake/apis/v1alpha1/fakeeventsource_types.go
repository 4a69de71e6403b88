package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// FakeEventSource receives messages from the queue of a backend.
//
// +direct-secrets:eventsource

// FakeEventSourceSpec names the backend with the queue.
type FakeEventSourceSpec struct {
	common.EventSourceSpec `json:",inline"`

	// Name of the backend that the test has set up.
	// +kubebuilder:validation:MaxLength=253
	Backend string `json:"backend"`
}
