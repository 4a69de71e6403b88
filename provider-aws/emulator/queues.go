package emulator

import (
	"crypto/md5" //nolint:gosec // The protocol of SQS has it.
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// queueService is SQS. A queue gets the events of EventBridge about every change of a secret or parameter.
var queueService = &jsonService{scope: "sqs", target: "AmazonSQS.", operations: map[string]operation{
	"ChangeMessageVisibilityBatch": handle((*Emulator).changeMessageVisibilityBatch),
	"DeleteMessageBatch":           handle((*Emulator).deleteMessageBatch),
	"GetQueueAttributes":           handle((*Emulator).getQueueAttributes),
	"ReceiveMessage":               handle((*Emulator).receiveMessage),
	"SendMessage":                  handle((*Emulator).sendMessage),
}, queryErrors: map[string]string{
	"InvalidParameterValueException": "InvalidParameterValue",
	"KmsAccessDenied":                "KMS.AccessDeniedException",
	"KmsDisabled":                    "KMS.DisabledException",
	"KmsInvalidKeyUsage":             "KMS.InvalidKeyUsageException",
	"KmsInvalidState":                "KMS.InvalidStateException",
	"KmsNotFound":                    "KMS.NotFoundException",
	"KmsOptInRequired":               "KMS.OptInRequired",
	"KmsThrottled":                   "KMS.ThrottlingException",
	"QueueDoesNotExist":              "AWS.SimpleQueueService.NonExistentQueue",
	"ReceiptHandleIsInvalid":         "ReceiptHandleIsInvalid",
	"TooManyEntriesInBatchRequest":   "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
}}

// pollInterval is how often a call that waits for messages checks for them.
const pollInterval = 5 * time.Millisecond

// A Queue is a standard queue of SQS: it delivers a message again when its visibility timeout is over.
type Queue struct {
	fake.Messages[string]
	URL string
	// MaxReceives is the number of deliveries after which a message moves to Undelivered; 0: no limit.
	MaxReceives int
	Undelivered *Queue

	unfed atomic.Bool
}

// AddQueue creates a queue, or returns the one of this name. From now on it gets the events of EventBridge.
func (e *Emulator) AddQueue(name string) *Queue {
	e.queuesMu.Lock()
	defer e.queuesMu.Unlock()
	if q := e.queues[name]; q != nil {
		return q
	}
	q := &Queue{URL: "https://sqs." + e.region + ".amazonaws.com/" + e.account + "/" + name}
	if e.queues == nil {
		e.queues = map[string]*Queue{}
	}
	e.queues[name] = q
	return q
}

// Unfeed ends, or with false begins again, that events of EventBridge arrive, as a missing rule does.
func (q *Queue) Unfeed(unfed bool) { q.unfed.Store(unfed) }

// Disturb does what a standard queue may do to messages: it makes some of those that were received visible again, duplicates some, and
// changes their order.
func (q *Queue) Disturb(random *rand.Rand) {
	q.Change(func(all []*fake.Delivery[string]) []*fake.Delivery[string] {
		for _, m := range slices.Clone(all) {
			if random.IntN(4) == 0 {
				m.Hidden = time.Time{}
			}
			if random.IntN(8) == 0 && len(all) < maxDisturbed {
				all = append(all, &fake.Delivery[string]{ID: newUUID(), Body: m.Body, Sent: m.Sent})
			}
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all
	})
}

// maxDisturbed is the number of messages from which on Disturb duplicates none.
const maxDisturbed = 1000

// expire moves visible messages that were received too often.
func (q *Queue) expire() {
	if q.MaxReceives == 0 {
		return
	}
	q.Change(func(all []*fake.Delivery[string]) []*fake.Delivery[string] {
		return slices.DeleteFunc(all, func(m *fake.Delivery[string]) bool {
			expired := m.Received >= q.MaxReceives && time.Now().After(m.Hidden)
			if expired {
				q.Undelivered.Send(m.Body)
			}
			return expired
		})
	})
}

// queueRef is the field of a request that names a queue.
type queueRef struct {
	QueueURL string `json:"QueueUrl"`
}

func (r *queueRef) secretIDs() []string {
	return []string{r.QueueURL[strings.LastIndex(r.QueueURL, "/")+1:]}
}

// queue returns the queue of a request, if it exists.
func (e *Emulator) queue(ref queueRef) (*Queue, error) {
	e.queuesMu.Lock()
	defer e.queuesMu.Unlock()
	if of := e.queues[ref.secretIDs()[0]]; of != nil && of.URL == ref.QueueURL {
		return of, nil
	}
	return nil, badRequest("QueueDoesNotExist", "The specified queue does not exist.")
}

type receiveMessageInput struct {
	queueRef

	MaxNumberOfMessages, WaitTimeSeconds, VisibilityTimeout int
}

type receivedMessage struct {
	MessageID     string `json:"MessageId"`
	ReceiptHandle string
	Body          string
	MD5OfBody     string
	Attributes    map[string]string
}

func (e *Emulator) receiveMessage(q *request, in *receiveMessageInput) (any, error) {
	of, err := e.queue(in.queueRef)
	if err != nil {
		return nil, err
	}
	var out struct{ Messages []receivedMessage }
	for start := time.Now(); ; {
		of.expire()
		taken := of.Take(max(in.MaxNumberOfMessages, 1), time.Duration(in.VisibilityTimeout)*time.Second)
		for _, m := range taken {
			sum := md5.Sum([]byte(m.Body)) //nolint:gosec // The protocol of SQS has it.
			out.Messages = append(out.Messages, receivedMessage{
				MessageID: m.ID, ReceiptHandle: m.Receipt, Body: m.Body, MD5OfBody: hex.EncodeToString(sum[:]),
				Attributes: map[string]string{"SentTimestamp": strconv.FormatInt(m.Sent.UnixMilli(), 10), "ApproximateReceiveCount": strconv.Itoa(m.Received)},
			})
		}
		if len(taken) > 0 || time.Since(start) >= time.Duration(in.WaitTimeSeconds)*time.Second || !provider.Sleep(q.ctx, pollInterval) {
			return &out, nil
		}
	}
}

type queueEntry struct {
	ID                string `json:"Id"`
	ReceiptHandle     string `json:",omitempty"`
	VisibilityTimeout int    `json:",omitempty"`
}

type queueBatchInput struct {
	queueRef

	Entries []queueEntry
}

// queueBatch is the answer to a batch.
type queueBatch struct {
	Successful []queueEntry
	Failed     []failedEntry
}

type failedEntry struct {
	ID            string `json:"Id"`
	Code, Message string
	SenderFault   bool
}

// batch calls f for each entry.
func (e *Emulator) batch(in *queueBatchInput, f func(of *Queue, entry queueEntry)) (any, error) {
	of, err := e.queue(in.queueRef)
	if err != nil {
		return nil, err
	}
	if len(in.Entries) > 10 {
		return nil, badRequest("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", len(in.Entries))
	}
	out := queueBatch{}
	for _, entry := range in.Entries {
		if f := e.Take(func(f Fault) bool { return f.Entry && f.Key == entry.ReceiptHandle }); f != nil {
			out.Failed = append(out.Failed, failedEntry{entry.ID, f.Fault.Code, f.Fault.Message, f.Fault.Status < http.StatusInternalServerError})
			continue
		}
		f(of, entry)
		out.Successful = append(out.Successful, queueEntry{ID: entry.ID})
	}
	return &out, nil
}

type deleteMessageBatchInput struct{ queueBatchInput }

func (e *Emulator) deleteMessageBatch(_ *request, in *deleteMessageBatchInput) (any, error) {
	return e.batch(&in.queueBatchInput, func(of *Queue, entry queueEntry) { of.Remove(entry.ReceiptHandle) })
}

type changeMessageVisibilityBatchInput struct{ queueBatchInput }

func (e *Emulator) changeMessageVisibilityBatch(_ *request, in *changeMessageVisibilityBatchInput) (any, error) {
	return e.batch(&in.queueBatchInput, func(of *Queue, entry queueEntry) {
		of.Hide(entry.ReceiptHandle, time.Duration(entry.VisibilityTimeout)*time.Second)
	})
}

type getQueueAttributesInput struct{ queueRef }

func (e *Emulator) getQueueAttributes(_ *request, in *getQueueAttributesInput) (any, error) {
	if _, err := e.queue(in.queueRef); err != nil {
		return nil, err
	}
	return map[string]any{"Attributes": map[string]string{"QueueArn": "arn:aws:sqs:" + e.region + ":" + e.account + ":" + in.secretIDs()[0]}}, nil
}

type sendMessageInput struct {
	queueRef

	MessageBody string
}

func (e *Emulator) sendMessage(_ *request, in *sendMessageInput) (any, error) {
	of, err := e.queue(in.queueRef)
	if err != nil {
		return nil, err
	}
	of.Send(in.MessageBody)
	sum := md5.Sum([]byte(in.MessageBody)) //nolint:gosec // The protocol of SQS has it.
	return map[string]string{"MessageId": newUUID(), "MD5OfMessageBody": hex.EncodeToString(sum[:])}, nil
}
