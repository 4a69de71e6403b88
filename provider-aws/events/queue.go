// Package events receives the messages about changed secrets and parameters that EventBridge sends to a queue of SQS, for the event
// source Kinds AWSEventSource and ClusterAWSEventSource.
package events

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
)

const (
	// wait is how long one call waits for messages, in seconds. It is less than the timeout of a request.
	wait = 10
	// most is the maximum number of messages of one call.
	most = 10
)

// A Queue is a queue of SQS.
type Queue struct {
	api    *sqs.Client
	config *awsconfig.Config
	url    *string
}

// An Object is an event source Kind of AWS.
type Object interface {
	awsconfig.Object
	provider.EventSourceObject

	// Queue returns the URL of the queue.
	Queue() string
}

var (
	_ provider.EventSource = &Queue{}
	_ provider.Checker     = &Queue{}
)

// Connect returns the queue of an event source, namespaced or not. It does not call AWS.
func Connect[S Object](ctx context.Context, s S, creds provider.Credentials) (provider.EventSource, error) {
	c, err := awsconfig.Load(ctx, s, creds)
	if err != nil {
		return nil, err
	}
	api := sqs.NewFromConfig(c.AWS, func(o *sqs.Options) {
		o.BaseEndpoint = cmp.Or(c.Endpoint, o.BaseEndpoint)
		o.DisableMessageChecksumValidation = true // It uses MD5, which FIPS mode refuses. TLS protects the messages.
	})
	return &Queue{api: api, config: c, url: aws.String(s.Queue())}, nil
}

// Close releases connections.
func (q *Queue) Close() error { return q.config.Close() }

// Check reads one attribute of the queue. It also passes if only the permission for that call is missing, because then the login
// works.
func (q *Queue) Check(ctx context.Context) error {
	_, err := awsconfig.Call(ctx, q.config, q.api.GetQueueAttributes, &sqs.GetQueueAttributesInput{
		QueueUrl: q.url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if awsconfig.IsAccessDenied(awsconfig.CodeOf(err)) {
		return nil
	}
	return q.explain(err, "spec.sqs.queueURL", "sqs:GetQueueAttributes")
}

// Receive implements provider.EventSource.
func (q *Queue) Receive(ctx context.Context) ([]provider.Message, error) {
	out, err := q.receive(ctx, most)
	if provider.IsTooLarge(err) { // One message at a time always fits.
		out, err = q.receive(ctx, 1)
	}
	if err != nil {
		return nil, q.explain(err, "receiving messages", "sqs:ReceiveMessage")
	}
	var messages []provider.Message
	for _, m := range out.Messages {
		message := parse([]byte(aws.ToString(m.Body)))
		message.Receipt = aws.ToString(m.ReceiptHandle)
		if sent, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
			message.Sent = time.UnixMilli(sent)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

func (q *Queue) receive(ctx context.Context, n int32) (*sqs.ReceiveMessageOutput, error) {
	return awsconfig.Call(ctx, q.config, q.api.ReceiveMessage, &sqs.ReceiveMessageInput{
		QueueUrl: q.url, MaxNumberOfMessages: n, WaitTimeSeconds: wait, VisibilityTimeout: hold(),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
	})
}

// hold returns provider.Hold in seconds.
func hold() int32 { return int32(provider.Hold / time.Second) }

// Extend implements provider.EventSource.
func (q *Queue) Extend(ctx context.Context, messages []provider.Message) error {
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: q.url}
	for i, m := range messages {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.Receipt), VisibilityTimeout: hold(),
		})
	}
	out, err := awsconfig.Call(ctx, q.config, q.api.ChangeMessageVisibilityBatch, in)
	if err != nil {
		return q.explain(err, "keeping messages", "sqs:ChangeMessageVisibility")
	}
	return q.explainEntries(out.Failed, len(messages), "keeping messages", "sqs:ChangeMessageVisibility")
}

// Ack implements provider.EventSource.
func (q *Queue) Ack(ctx context.Context, messages []provider.Message) error {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: q.url}
	for i, m := range messages {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.Receipt)})
	}
	out, err := awsconfig.Call(ctx, q.config, q.api.DeleteMessageBatch, in)
	if err != nil {
		return q.explain(err, "removing messages", "sqs:DeleteMessage")
	}
	return q.explainEntries(out.Failed, len(messages), "removing messages", "sqs:DeleteMessage")
}

// explainEntries explains why messages of a batch have failed; nil if only their receipts have expired, because these messages come
// again, and another call does not help.
func (q *Queue) explainEntries(failed []types.BatchResultErrorEntry, of int, what, action string) error {
	failed = slices.DeleteFunc(failed, hasExpired)
	if len(failed) == 0 {
		return nil
	}
	first := &smithy.GenericAPIError{Code: aws.ToString(failed[0].Code), Message: aws.ToString(failed[0].Message)}
	return q.explain(first, fmt.Sprintf("%s: %d of %d failed", what, len(failed), of), action)
}

// hasExpired reports whether a message has failed because its receipt is not, or not any more, that of a held message.
func hasExpired(e types.BatchResultErrorEntry) bool {
	code, _ := strings.CutPrefix(aws.ToString(e.Code), "AWS.SimpleQueueService.")
	return e.SenderFault && (code == "ReceiptHandleIsInvalid" || code == "MessageNotInflight" || strings.Contains(aws.ToString(e.Message), expiredReceipt))
}

const (
	// expiredReceipt is not a code of AWS. It stands for an InvalidParameterValue with this text.
	expiredReceipt = "receipt handle has expired"
	expired        = "the receipts of messages have expired; the messages come again"
	noKMS          = "the AWS account is not subscribed to KMS"
	busyKMS        = "KMS throttles the calls; retrying with back-off"
)

// codes are the error codes of SQS in addition to the common ones of AWS, as listed at
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html. Any other code is Unavailable. Most
// errors have a name, and a code in the header x-amzn-query-error, which the SDK prefers.
var codes = awsconfig.Codes{
	"QueueDoesNotExist":                       {Class: provider.Invalid, Text: "the queue does not exist; correct spec.sqs.queueURL and spec.region"},
	"AWS.SimpleQueueService.NonExistentQueue": {Class: provider.Invalid, Text: "the queue does not exist; correct spec.sqs.queueURL and spec.region"},
	"InvalidAddress":                          {Class: provider.Invalid, Text: "AWS does not accept spec.sqs.queueURL; correct it"},
	expiredReceipt:                            {Class: provider.Unavailable, Text: expired},
	"ReceiptHandleIsInvalid":                  {Class: provider.Unavailable, Text: expired},
	"KmsAccessDenied":                         {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KMS.AccessDeniedException":               {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KmsDisabled":                             {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KMS.DisabledException":                   {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KmsInvalidKeyUsage":                      {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KMS.InvalidKeyUsageException":            {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KmsInvalidState":                         {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KMS.InvalidStateException":               {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KmsNotFound":                             {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KMS.NotFoundException":                   {Class: provider.Denied, Text: awsconfig.CannotDecrypt},
	"KmsOptInRequired":                        {Class: provider.Denied, Text: noKMS},
	"KMS.OptInRequired":                       {Class: provider.Denied, Text: noKMS},
	"KmsThrottled":                            {Class: provider.Throttled, Text: busyKMS},
	"KMS.ThrottlingException":                 {Class: provider.Throttled, Text: busyKMS},
	"OverLimit":                               {Class: provider.Unavailable, Text: "too many messages of the queue are received and not yet handled; retrying"},
}

// explain turns an error of the SDK into a provider.Error; nil into nil.
func (q *Queue) explain(err error, what, action string) error {
	if err == nil {
		return nil
	}
	var api smithy.APIError
	if errors.As(err, &api) && awsconfig.CodeOf(err) != "" && strings.Contains(api.ErrorMessage(), expiredReceipt) {
		return q.config.ExplainCode(expiredReceipt, "", what, codes)
	}
	return awsconfig.ToAllow(q.config.Explain(err, what, codes), action)
}
