package emulator

import (
	"crypto/md5" //nolint:gosec // The protocol of SQS has it.
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
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
	URL string
	// MaxReceives is the number of deliveries after which a message moves to Undelivered; 0: no limit.
	MaxReceives int
	Undelivered *Queue

	mu       sync.Mutex
	unfed    bool
	serial   int
	messages []*queueMessage
}

type queueMessage struct {
	id, receipt, body string
	sent, hidden      time.Time
	received          int
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

// Send adds a message with a body.
func (q *Queue) Send(body string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.serial++
	q.messages = append(q.messages, &queueMessage{id: newUUID(), body: body, sent: time.Now()})
}

// Unfeed ends, or with false begins again, that events of EventBridge arrive, as a missing rule does.
func (q *Queue) Unfeed(unfed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unfed = unfed
}

func (q *Queue) isFed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.unfed
}

// Left returns the number of messages that were not deleted.
func (q *Queue) Left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.messages)
}

// Redeliver makes all received messages visible again.
func (q *Queue) Redeliver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.messages {
		m.hidden = time.Time{}
	}
}

// Disturb does what a standard queue may do to messages: it makes some of those that were received visible again, duplicates some, and
// changes their order.
func (q *Queue) Disturb(random *rand.Rand) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range slices.Clone(q.messages) {
		if random.IntN(4) == 0 {
			m.hidden = time.Time{}
		}
		if random.IntN(8) == 0 && len(q.messages) < maxDisturbed {
			q.messages = append(q.messages, &queueMessage{id: newUUID(), body: m.body, sent: m.sent})
		}
	}
	random.Shuffle(len(q.messages), func(i, j int) { q.messages[i], q.messages[j] = q.messages[j], q.messages[i] })
}

// maxDisturbed is the number of messages from which on Disturb duplicates none.
const maxDisturbed = 1000

// take returns up to n visible messages, and hides them.
func (q *Queue) take(n int, hide time.Duration) (taken []queueMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	var expired []string
	q.messages = slices.DeleteFunc(q.messages, func(m *queueMessage) bool {
		if len(taken) == n || now.Before(m.hidden) {
			return false
		}
		if q.MaxReceives > 0 && m.received >= q.MaxReceives {
			expired = append(expired, m.body)
			return true
		}
		q.serial++
		m.receipt, m.hidden, m.received = m.id+"/"+strconv.Itoa(q.serial), now.Add(hide), m.received+1
		taken = append(taken, *m)
		return false
	})
	for _, body := range expired {
		q.Undelivered.Send(body)
	}
	return taken
}

// queueRef is the field of a request that names a queue.
type queueRef struct {
	QueueURL string `json:"QueueUrl"`
}

func (r *queueRef) secretIDs() []string {
	return []string{r.QueueURL[strings.LastIndex(r.QueueURL, "/")+1:]}
}

// queue returns the queue of a request, if its caller may make the call.
func (e *Emulator) queue(q *request, ref queueRef) (*Queue, error) {
	name := ref.secretIDs()[0]
	if q.caller.denies("sqs:"+q.operation, name) {
		return nil, accessDenied(q.caller, "sqs:"+strings.ToLower(q.operation), "arn:aws:sqs:"+e.region+":"+e.account+":"+name)
	}
	e.queuesMu.Lock()
	defer e.queuesMu.Unlock()
	if of := e.queues[name]; of != nil && of.URL == ref.QueueURL {
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
	of, err := e.queue(q, in.queueRef)
	if err != nil {
		return nil, err
	}
	var out struct{ Messages []receivedMessage }
	for start := time.Now(); ; {
		taken := of.take(max(in.MaxNumberOfMessages, 1), time.Duration(in.VisibilityTimeout)*time.Second)
		for _, m := range taken {
			sum := md5.Sum([]byte(m.body)) //nolint:gosec // The protocol of SQS has it.
			out.Messages = append(out.Messages, receivedMessage{
				MessageID: m.id, ReceiptHandle: m.receipt, Body: m.body, MD5OfBody: hex.EncodeToString(sum[:]),
				Attributes: map[string]string{"SentTimestamp": strconv.FormatInt(m.sent.UnixMilli(), 10), "ApproximateReceiveCount": strconv.Itoa(m.received)},
			})
		}
		if len(taken) > 0 || time.Since(start) >= time.Duration(in.WaitTimeSeconds)*time.Second || !provider.Sleep(q.ctx, pollInterval) {
			return &out, nil
		}
	}
}

type queueEntry struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout int
}

type queueBatchInput struct {
	queueRef

	Entries []queueEntry
}

// queueBatch is the answer to a batch.
type queueBatch struct {
	Successful []struct {
		ID string `json:"Id"`
	}
	Failed []failedEntry
}

type failedEntry struct {
	ID            string `json:"Id"`
	Code, Message string
	SenderFault   bool
}

// batch calls f for each entry, under the lock, with the index of its message; -1 if the receipt is not that of the last delivery.
func (e *Emulator) batch(q *request, in *queueBatchInput, f func(of *Queue, i int, entry queueEntry)) (any, error) {
	of, err := e.queue(q, in.queueRef)
	if err != nil {
		return nil, err
	}
	if len(in.Entries) > 10 {
		return nil, badRequest("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", len(in.Entries))
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	out := queueBatch{}
	for _, entry := range in.Entries {
		if f := e.Take(func(f Fault) bool { return f.Entry && f.Key == entry.ReceiptHandle }); f != nil {
			out.Failed = append(out.Failed, failedEntry{entry.ID, f.Fault.Code, f.Fault.Message, f.Fault.Status < http.StatusInternalServerError})
			continue
		}
		i := slices.IndexFunc(of.messages, func(m *queueMessage) bool { return m.receipt == entry.ReceiptHandle })
		if i >= 0 {
			f(of, i, entry)
		}
		out.Successful = append(out.Successful, struct {
			ID string `json:"Id"`
		}{entry.ID})
	}
	return &out, nil
}

type deleteMessageBatchInput struct{ queueBatchInput }

func (e *Emulator) deleteMessageBatch(q *request, in *deleteMessageBatchInput) (any, error) {
	return e.batch(q, &in.queueBatchInput, func(of *Queue, i int, _ queueEntry) { of.messages = slices.Delete(of.messages, i, i+1) })
}

type changeMessageVisibilityBatchInput struct{ queueBatchInput }

func (e *Emulator) changeMessageVisibilityBatch(q *request, in *changeMessageVisibilityBatchInput) (any, error) {
	return e.batch(q, &in.queueBatchInput, func(of *Queue, i int, entry queueEntry) {
		of.messages[i].hidden = time.Now().Add(time.Duration(entry.VisibilityTimeout) * time.Second)
	})
}

type getQueueAttributesInput struct{ queueRef }

func (e *Emulator) getQueueAttributes(q *request, in *getQueueAttributesInput) (any, error) {
	if _, err := e.queue(q, in.queueRef); err != nil {
		return nil, err
	}
	return map[string]any{"Attributes": map[string]string{"QueueArn": "arn:aws:sqs:" + e.region + ":" + e.account + ":" + in.secretIDs()[0]}}, nil
}

type sendMessageInput struct {
	queueRef

	MessageBody string
}

func (e *Emulator) sendMessage(q *request, in *sendMessageInput) (any, error) {
	of, err := e.queue(q, in.queueRef)
	if err != nil {
		return nil, err
	}
	of.Send(in.MessageBody)
	sum := md5.Sum([]byte(in.MessageBody)) //nolint:gosec // The protocol of SQS has it.
	return map[string]string{"MessageId": newUUID(), "MD5OfMessageBody": hex.EncodeToString(sum[:])}, nil
}
