package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// GCPEventSource is a subscription of Pub/Sub that Secret Manager fills when a secret changes. The objects of its namespace that read
// or push it are then refreshed at once.
//
// +direct-secrets:eventsource:shortName=gcpes

// GCPEventSourceSpec describes the subscription, and how to log in.
type GCPEventSourceSpec struct {
	common.EventSourceSpec `json:",inline"`
	common.RetrySpec       `json:",inline"`

	// ID or number of the Google Cloud project that has the subscription.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$`
	ProjectID string `json:"projectID"`

	// The subscription of Pub/Sub.
	PubSub PubSubSubscription `json:"pubSub"`

	// URL of Pub/Sub, if it is not the public endpoint of Google, for example the one of a region. It must use https,
	// except on the operator's own host (127.0.0.1, localhost), for an emulator; logins then use that host, too.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^https?://[^/]')",message="endpoint must be a URL, such as https://europe-west3-pubsub.googleapis.com"
	Endpoint string `json:"endpoint,omitempty"`

	// Credentials for Google. Unset: the operator's own identity, if the chart value ambientCredentials allows it.
	// +optional
	Auth *GCPAuth `json:"auth,omitempty"`
}

// PubSubSubscription names a subscription of Pub/Sub.
type PubSubSubscription struct {
	// ID of a pull subscription in the project projectID, or the full name of a subscription in any project.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^(projects/[a-z0-9]([a-z0-9.:-]{0,126}[a-z0-9])?/subscriptions/)?[A-Za-z][A-Za-z0-9._~+%-]{2,254}$')",message="subscription must be the ID of a subscription, such as secrets, or its full name, such as projects/my-project/subscriptions/secrets"
	Subscription string `json:"subscription"`
}

// Connection returns the settings of the connection.
func (s *GCPEventSourceSpec) Connection() *GCPSpec {
	return &GCPSpec{RetrySpec: s.RetrySpec, ProjectID: s.ProjectID, Endpoint: s.Endpoint, Auth: s.Auth}
}

// GCP returns the embedded spec.
func (s *GCPEventSource) GCP() *GCPEventSourceSpec { return &s.Spec }

// GCP returns the embedded spec.
func (s *ClusterGCPEventSource) GCP() *GCPEventSourceSpec { return &s.Spec.GCPEventSourceSpec }
