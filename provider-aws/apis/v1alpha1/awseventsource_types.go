package v1alpha1

import (
	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// AWSEventSource is a queue of SQS that EventBridge fills when a secret or parameter changes. The objects of its namespace that read
// or push it are then refreshed at once.
//
// +direct-secrets:eventsource:shortName=awses,get=AWS:AWSSpec

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

// ClusterAWSEventSourceSpec is an AWSEventSourceSpec with conditions for namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.sessionTagsPolicy) || self.sessionTagsPolicy != 'Simple'",message="sessionTagsPolicy: Simple is not supported here, because the event source has no namespace; use sessionTags"
type ClusterAWSEventSourceSpec struct {
	AWSEventSourceSpec            `json:",inline"`
	common.ClusterEventSourceSpec `json:",inline"`
}

// Queue returns the URL of the queue.
func (s *AWSEventSource) Queue() string { return s.Spec.SQS.QueueURL }

// Queue returns the URL of the queue.
func (s *ClusterAWSEventSource) Queue() string { return s.Spec.SQS.QueueURL }
