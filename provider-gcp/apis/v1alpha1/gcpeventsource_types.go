package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// GCPEventSource is a subscription of Pub/Sub that Secret Manager fills when a secret changes. The objects of its namespace that read
// or push it are then refreshed at once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gcpes,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last event",type=date,JSONPath=`.status.lastEventTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type GCPEventSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GCPEventSourceSpec `json:"spec"`

	common.EventSourceSubresource `json:",inline"`
}

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

// GCPEventSourceList is a list of GCPEventSources.
//
// +kubebuilder:object:root=true
type GCPEventSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []GCPEventSource `json:"items"`
}

// ClusterGCPEventSource is a GCPEventSource for the objects of many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cgcpes,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last event",type=date,JSONPath=`.status.lastEventTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterGCPEventSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterGCPEventSourceSpec `json:"spec"`

	common.EventSourceSubresource `json:",inline"`
}

// ClusterGCPEventSourceSpec is a GCPEventSourceSpec with conditions for namespaces.
type ClusterGCPEventSourceSpec struct {
	GCPEventSourceSpec            `json:",inline"`
	common.ClusterEventSourceSpec `json:",inline"`
}

// ClusterGCPEventSourceList is a list of ClusterGCPEventSources.
//
// +kubebuilder:object:root=true
type ClusterGCPEventSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterGCPEventSource `json:"items"`
}

// Connection returns the settings of the connection.
func (s *GCPEventSourceSpec) Connection() *GCPSpec {
	return &GCPSpec{RetrySpec: s.RetrySpec, ProjectID: s.ProjectID, Endpoint: s.Endpoint, Auth: s.Auth}
}

// EventSourceSpec returns the embedded spec.
func (s *GCPEventSource) EventSourceSpec() *common.EventSourceSpec { return &s.Spec.EventSourceSpec }

// GCP returns the embedded spec.
func (s *GCPEventSource) GCP() *GCPEventSourceSpec { return &s.Spec }

// EventSourceSpec returns the embedded spec.
func (s *ClusterGCPEventSource) EventSourceSpec() *common.EventSourceSpec {
	return &s.Spec.EventSourceSpec
}

// ClusterStoreSpec returns the embedded spec as that of a store.
func (s *ClusterGCPEventSource) ClusterStoreSpec() *common.ClusterStoreSpec { return s.Spec.AsStore() }

// GCP returns the embedded spec.
func (s *ClusterGCPEventSource) GCP() *GCPEventSourceSpec { return &s.Spec.GCPEventSourceSpec }
