package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AWSEventSource is a queue of SQS that EventBridge fills when a secret or parameter changes. The objects of its namespace that read
// or push it are then refreshed at once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=awses,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last event",type=date,JSONPath=`.status.lastEventTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AWSEventSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AWSEventSourceSpec `json:"spec"`

	common.EventSourceSubresource `json:",inline"`
}

// AWSEventSourceSpec describes the queue, and how to log in.
type AWSEventSourceSpec struct {
	common.EventSourceSpec `json:",inline"`
	AWSSpec                `json:",inline"`

	// The queue of SQS.
	SQS SQSQueue `json:"sqs"`
}

// SQSQueue names a queue of SQS.
type SQSQueue struct {
	// URL of the queue. It only names the queue: requests go to the service in spec.region, or to spec.endpoint.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/]+/[0-9]{12}/[A-Za-z0-9_-]{1,80}$')",message="queueURL must be the URL of a standard queue, such as https://sqs.eu-central-1.amazonaws.com/111122223333/secrets"
	QueueURL string `json:"queueURL"`
}

// AWSEventSourceList is a list of AWSEventSources.
//
// +kubebuilder:object:root=true
type AWSEventSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AWSEventSource `json:"items"`
}

// ClusterAWSEventSource is an AWSEventSource for the objects of many namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cawses,categories=direct-secrets
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Last event",type=date,JSONPath=`.status.lastEventTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterAWSEventSource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterAWSEventSourceSpec `json:"spec"`

	common.EventSourceSubresource `json:",inline"`
}

// ClusterAWSEventSourceSpec is an AWSEventSourceSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple'",message="sessionTagsPolicy: Simple is not supported here, because the event source has no namespace; use sessionTags"
type ClusterAWSEventSourceSpec struct {
	AWSEventSourceSpec            `json:",inline"`
	common.ClusterEventSourceSpec `json:",inline"`
}

// ClusterAWSEventSourceList is a list of ClusterAWSEventSources.
//
// +kubebuilder:object:root=true
type ClusterAWSEventSourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterAWSEventSource `json:"items"`
}

// EventSourceSpec returns the embedded spec.
func (s *AWSEventSource) EventSourceSpec() *common.EventSourceSpec { return &s.Spec.EventSourceSpec }

// AWS returns the embedded spec.
func (s *AWSEventSource) AWS() *AWSSpec { return &s.Spec.AWSSpec }

// Queue returns the URL of the queue.
func (s *AWSEventSource) Queue() string { return s.Spec.SQS.QueueURL }

// EventSourceSpec returns the embedded spec.
func (s *ClusterAWSEventSource) EventSourceSpec() *common.EventSourceSpec {
	return &s.Spec.EventSourceSpec
}

// ClusterStoreSpec returns the embedded spec as that of a store.
func (s *ClusterAWSEventSource) ClusterStoreSpec() *common.ClusterStoreSpec { return s.Spec.AsStore() }

// AWS returns the embedded spec.
func (s *ClusterAWSEventSource) AWS() *AWSSpec { return &s.Spec.AWSSpec }

// Queue returns the URL of the queue.
func (s *ClusterAWSEventSource) Queue() string { return s.Spec.SQS.QueueURL }
