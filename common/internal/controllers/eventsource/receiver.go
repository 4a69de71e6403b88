package eventsource

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/dispatch"
	"github.com/direct-secrets/direct-secrets/common/internal/kit"
	"github.com/direct-secrets/direct-secrets/common/internal/status"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// maxOpen is the maximum number of messages of one source that are received and not yet handled.
	//limit:events Messages of one event source that are received and not yet handled | The oldest are no longer kept, and come again.
	maxOpen = 1000
	// batch is the maximum number of messages in one call.
	batch = 10
	// longest is how long the delivery of a message again is put off. Then it comes again.
	longest = 5 * time.Minute
	// callTimeout is the timeout of one call to a queue. Receive waits for up to 20 seconds.
	callTimeout = time.Minute
	// maxReceipt is the maximum length of a receipt in bytes. A message with another one cannot be removed.
	//limit:events Receipt of a message | unit=bytes | The message cannot be removed.
	maxReceipt = 4096
	// maxReceipts limits the receipts of all sources of one Kind and tenant.
	//limit:events Receipts of the messages of all event sources of one Kind in a namespace that are not yet handled | unit=bytes | Further messages are not kept, and come again.
	maxReceipts = 8 << 20
	// gatherFor is the time between two checks for handled messages, so that one call removes those of several walks.
	gatherFor = 50 * time.Millisecond
	// reportEvery is the minimum time between two writes of the counts.
	reportEvery = 10 * time.Second
)

// A receiver receives the messages of one generation of an event source.
type receiver struct {
	*Reconciler
	source provider.EventSourceObject
	stop   context.CancelFunc
	// arrived has an element if a message was received since tend last looked.
	arrived chan struct{}

	mu sync.Mutex
	// open are the messages that are received and not yet handled, in order. The oldest ones come again if there are too many.
	open []*delivery
	// counted are the messages since the last write of the counts.
	counted v1alpha1.ReceivedEvents
	// ended is true once no message is kept any longer.
	ended bool
}

// receipts counts the bytes of receipts that are kept.
type receipts struct {
	mu sync.Mutex
	// Bound: one per tenant with event sources.
	bytes map[string]int
}

// add adds bytes, which can be negative. It returns false if they exceed the limit.
func (r *receipts) add(tenant string, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 && r.bytes[tenant]+n > maxReceipts {
		return false
	}
	if r.bytes == nil {
		r.bytes = map[string]int{}
	}
	if r.bytes[tenant] += n; r.bytes[tenant] == 0 {
		delete(r.bytes, tenant)
	}
	return true
}

// keepLocked keeps a message until it is handled, if the tenant may have one more.
func (rc *receiver) keepLocked(d *delivery) {
	n := len(d.message.Receipt)
	if n <= maxReceipt && !rc.ended && rc.kept.add(dispatch.TenantOf(rc.source, ""), n) {
		rc.open = append(rc.open, d)
	}
}

// releaseLocked ends the count of messages that are no longer kept.
func (rc *receiver) releaseLocked(all ...*delivery) {
	for _, d := range all {
		rc.kept.add(dispatch.TenantOf(rc.source, ""), -len(d.message.Receipt))
	}
}

// end drops all messages. They come again.
func (rc *receiver) end() {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.releaseLocked(rc.open...)
	rc.open, rc.ended = nil, true
}

// delivery is a message that is received and not yet handled.
type delivery struct {
	message provider.Message
	// at is the moment after the objects that the message is about were notified.
	at int64
	// received is when it was received, held when its delivery again was last put off.
	received, held time.Time
}

// run receives messages until ctx ends.
func (rc *receiver) run(ctx context.Context) {
	for _, count := range []*prometheus.CounterVec{received, matchedEvents, malformed} {
		count.WithLabelValues(rc.kind.GoName()) // An alert needs the count of a silent source, too.
	}
	var attempts kit.Attempts
	for ctx.Err() == nil {
		if !rc.opts.Walks.Started() {
			provider.Sleep(ctx, gatherFor)
			continue
		}
		var messages []provider.Message
		err := rc.call(ctx, func(ctx context.Context, l *provider.Link) (err error) {
			messages, err = provider.Receive(ctx, l)
			return err
		})
		if err != nil {
			if ctx.Err() == nil {
				rc.opts.Suspect(rc.kind, client.ObjectKeyFromObject(rc.source)) // The validation writes the condition.
				provider.Sleep(ctx, attempts.Fail(provider.RetryAfter(err)))
			}
			continue
		}
		attempts.Succeed()
		rc.handle(ctx, messages)
	}
}

// call calls the queue. The provider's code might not return when ctx ends.
func (rc *receiver) call(ctx context.Context, f func(context.Context, *provider.Link) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l, err := rc.pool.Loader(rc.kind, rc.source, "").Link(ctx)
	if err != nil {
		return err
	}
	_, err = dispatch.Within(ctx, func() (struct{}, error) { return struct{}{}, f(ctx, l) })
	return err
}

// handle notifies the objects that messages are about. A message is removed from the queue when all that were notified until then have
// their result.
func (rc *receiver) handle(ctx context.Context, messages []provider.Message) {
	now := time.Now()
	var events []provider.Event
	for _, m := range messages {
		events = append(events, m.Events...)
		received.WithLabelValues(rc.kind.GoName()).Inc()
	}
	end, err := rc.opts.Walks.OwnWork(ctx, dispatch.TenantOf(rc.source, "")) // It compares them with expressions of the tenant.
	if err != nil {
		return // The messages come again.
	}
	matched := rc.matcher.match(ctx, rc.source, rc, now, events)
	end()
	at := rc.opts.Walks.Moment()
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for _, m := range messages {
		secrets := map[string]bool{}
		for i, e := range m.Events {
			if matched[i] {
				secrets[e.Names[0]] = true
			}
		}
		matched = matched[len(m.Events):]
		m.Events, m.Matched = nil, len(secrets)
		rc.countLocked(ctx, m, now)
		rc.keepLocked(&delivery{message: m, at: at, received: now, held: now})
	}
	excess := max(0, len(rc.open)-maxOpen)
	rc.releaseLocked(rc.open[:excess]...)
	rc.open = rc.open[excess:]
	select {
	case rc.arrived <- struct{}{}:
	default:
	}
}

func (rc *receiver) countLocked(ctx context.Context, m provider.Message, now time.Time) {
	rc.counted.ReceivedEvents++
	rc.counted.LastEventTime = &metav1.Time{Time: now}
	if m.Matched > 0 {
		rc.counted.MatchedEvents++
		matchedEvents.WithLabelValues(rc.kind.GoName()).Inc()
	}
	if m.Malformed == "" {
		return
	}
	malformed.WithLabelValues(rc.kind.GoName()).Inc()
	if rc.counted.MalformedEvents++; rc.counted.MalformedEvents == 1 { // A sender must not be able to fill the log.
		log.FromContext(ctx).Info("ignoring a message that reports no change of a secret", "eventSource", client.ObjectKeyFromObject(rc.source), "why", m.Malformed)
	}
}

// tend removes handled messages, puts off those that are not yet handled, and writes the counts, until ctx ends.
func (rc *receiver) tend(ctx context.Context) {
	defer rc.end()
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	for {
		var again <-chan time.Time
		if rc.ack(ctx) > 0 {
			again = time.After(gatherFor)
		}
		select {
		case <-ctx.Done():
			return
		case <-rc.arrived:
		case <-again:
		case <-report.C:
			rc.extend(ctx, time.Now())
			rc.report(ctx)
		}
	}
}

// ack removes handled messages from the queue, and returns the number of the others. If that fails, they come again, and cost a
// comparison.
func (rc *receiver) ack(ctx context.Context) (left int) {
	oldest := rc.opts.Walks.Oldest(rc)
	rc.mu.Lock()
	n := len(rc.open)
	if oldest > 0 {
		n, _ = slices.BinarySearchFunc(rc.open, oldest, func(d *delivery, at int64) int { return cmp.Compare(d.at, at) })
	}
	handled := slices.Clone(rc.open[:n])
	rc.releaseLocked(handled...)
	rc.open = slices.Delete(rc.open, 0, n)
	left = len(rc.open)
	rc.mu.Unlock()
	for _, d := range handled {
		if d.message.Matched > 0 && !d.message.Sent.IsZero() {
			lag.WithLabelValues(rc.kind.GoName()).Observe(time.Since(d.message.Sent).Seconds())
		}
	}
	if err := rc.inBatches(ctx, handled, provider.Ack); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Info("cannot remove messages from the queue; they come again", "eventSource", client.ObjectKeyFromObject(rc.source), "error", provider.Safe(err).Error())
	}
	return left
}

// inBatches calls the queue with messages. It returns the last error.
func (rc *receiver) inBatches(ctx context.Context, all []*delivery, f func(context.Context, *provider.Link, []provider.Message) error) (last error) {
	for some := range slices.Chunk(all, batch) {
		messages := make([]provider.Message, len(some))
		for i, d := range some {
			messages[i] = d.message
		}
		if err := rc.call(ctx, func(ctx context.Context, l *provider.Link) error { return f(ctx, l, messages) }); err != nil {
			last = err
		}
	}
	return last
}

// extend puts off the delivery again of the messages that are not yet handled.
func (rc *receiver) extend(ctx context.Context, now time.Time) {
	var due []*delivery
	rc.mu.Lock()
	rc.open = slices.DeleteFunc(rc.open, func(d *delivery) bool {
		late := now.Sub(d.received) > longest
		if late {
			rc.releaseLocked(d)
		}
		return late
	})
	for _, d := range rc.open {
		if now.Sub(d.held) > provider.Hold/3 {
			d.held = now
			due = append(due, d)
		}
	}
	rc.mu.Unlock()
	_ = rc.inBatches(ctx, due, provider.Extend) // They come again.
}

// miss counts a change that the event source has not reported.
func (rc *receiver) miss(now time.Time) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	rc.counted.LastMissedTime = &metav1.Time{Time: now}
}

// report writes the counts since the last report into the status.
func (rc *receiver) report(ctx context.Context) {
	rc.mu.Lock()
	counted := rc.counted
	rc.counted = v1alpha1.ReceivedEvents{}
	rc.mu.Unlock()
	if counted == (v1alpha1.ReceivedEvents{}) {
		return
	}
	err := rc.write(ctx, counted)
	if err == nil {
		return
	}
	rc.mu.Lock()
	defer rc.mu.Unlock()
	add(&rc.counted, counted)
}

func (rc *receiver) write(ctx context.Context, counted v1alpha1.ReceivedEvents) error {
	o, ok := rc.kind.New().(provider.EventSourceObject)
	if err := rc.cache.Get(ctx, client.ObjectKeyFromObject(rc.source), o); err != nil || !ok || o.GetUID() != rc.source.GetUID() {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot read the event source")
	}
	next := o.Received().DeepCopy()
	add(next, counted)
	err := status.Once(ctx, rc.live, o, "", o.Received(), next, rc.kind.New())
	return errors.Wrap(client.IgnoreNotFound(err), "cannot write the status of the event source")
}

// add adds counts to earlier ones.
func add(to *v1alpha1.ReceivedEvents, counted v1alpha1.ReceivedEvents) {
	to.LastEventTime, to.LastMissedTime = later(to.LastEventTime, counted.LastEventTime), later(to.LastMissedTime, counted.LastMissedTime)
	to.ReceivedEvents += counted.ReceivedEvents
	to.MatchedEvents += counted.MatchedEvents
	to.MalformedEvents += counted.MalformedEvents
}

// later returns the later of two times, which can be nil.
func later(a, b *metav1.Time) *metav1.Time {
	if a == nil || a.Before(b) {
		return b
	}
	return a
}
