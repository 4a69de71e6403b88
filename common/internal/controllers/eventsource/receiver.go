package eventsource

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
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
	maxOpen = 1000
	// batch is the maximum number of messages in one call.
	batch = 10
	// longest is how long the delivery of a message again is put off. Then it comes again.
	longest = 5 * time.Minute
	// callTimeout is the timeout of one call to a queue. Receive waits for up to 20 seconds.
	callTimeout = time.Minute
	// gatherFor is how long handled messages wait for others, so that one call removes them all.
	gatherFor = 50 * time.Millisecond
	// reportEvery is the minimum time between two writes of the counts.
	reportEvery = 10 * time.Second
)

// A receiver receives the messages of one generation of an event source.
type receiver struct {
	*Reconciler
	source provider.EventSourceObject
	stop   context.CancelFunc
	// handled are the messages to remove from the queue.
	handled chan provider.Message

	mu sync.Mutex
	// open are the messages that are received and not yet handled, by receipt.
	open map[string]*delivery
	// counted are the messages since the last write of the counts.
	counted v1alpha1.ReceivedEvents
}

// delivery is a message that is received and not yet handled.
type delivery struct {
	message provider.Message
	// received is when it was received, held when its delivery again was last put off.
	received, held time.Time
	// left is the number of changes, and of walks over stores, that have not ended.
	left atomic.Int64
}

// run receives messages until ctx ends.
func (rc *receiver) run(ctx context.Context) {
	for _, count := range []*prometheus.CounterVec{received, matchedEvents, malformed} {
		count.WithLabelValues(rc.kind.GoName()) // An alert needs the count of a silent source, too.
	}
	var attempts kit.Attempts
	for ctx.Err() == nil {
		if rc.full() {
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
		v := rc.matcher.view(rc.source)
		for _, m := range messages {
			rc.handle(ctx, m, v)
		}
	}
}

// call calls the queue. The provider's code might not return when ctx ends.
func (rc *receiver) call(ctx context.Context, f func(context.Context, *provider.Link) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l, err := rc.pool.Connection(rc.kind, rc.source, "").Link(ctx)
	if err != nil {
		return err
	}
	_, err = dispatch.Within(ctx, func() (struct{}, error) { return struct{}{}, f(ctx, l) })
	return err
}

// full reports whether too many messages are open.
func (rc *receiver) full() bool {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	return len(rc.open) >= maxOpen
}

// handle wakes the objects that a message is about. The message is removed from the queue when the last of their walks has ended.
func (rc *receiver) handle(ctx context.Context, m provider.Message, v *view) {
	now := time.Now()
	m.Matched = make([]bool, len(m.Events))
	d := &delivery{message: m, received: now, held: now}
	d.left.Store(1)
	rc.mu.Lock()
	rc.open[m.Receipt] = d
	rc.counted.ReceivedEvents++
	rc.counted.LastEventTime = &metav1.Time{Time: now}
	if m.Malformed != "" {
		rc.counted.MalformedEvents++
		malformed.WithLabelValues(rc.kind.GoName()).Inc()
	}
	first := rc.counted.MalformedEvents == 1
	rc.mu.Unlock()
	received.WithLabelValues(rc.kind.GoName()).Inc()
	if m.Malformed != "" && first { // A sender must not be able to fill the log.
		log.FromContext(ctx).Info("ignoring a message that reports no change of a secret", "eventSource", client.ObjectKeyFromObject(rc.source), "why", m.Malformed)
	}
	for i := range m.Events {
		v.match(ctx, &m.Events[i], now, func() (done func(matched bool)) {
			d.left.Add(1)
			return func(matched bool) { rc.end(d, i, matched) }
		})
	}
	rc.end(d, 0, false)
}

// end ends one part of the handling of an event of a message.
func (rc *receiver) end(d *delivery, event int, matched bool) {
	if matched {
		rc.mu.Lock()
		d.message.Matched[event] = true
		rc.mu.Unlock()
	}
	if d.left.Add(-1) > 0 {
		return
	}
	rc.mu.Lock()
	_, isOpen := rc.open[d.message.Receipt]
	delete(rc.open, d.message.Receipt)
	if slices.Contains(d.message.Matched, true) {
		rc.counted.MatchedEvents++
		matchedEvents.WithLabelValues(rc.kind.GoName()).Inc()
		if !d.message.Sent.IsZero() {
			lag.WithLabelValues(rc.kind.GoName()).Observe(time.Since(d.message.Sent).Seconds())
		}
	}
	rc.mu.Unlock()
	if isOpen { // At most maxOpen messages are open or in the channel, unless they come again.
		select {
		case rc.handled <- d.message:
		default:
		}
	}
}

// tend removes handled messages, puts off those that are not yet handled, and writes the counts, until ctx ends.
func (rc *receiver) tend(ctx context.Context) {
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-rc.handled:
			rc.ack(ctx, rc.gather(ctx, m))
		case <-report.C:
			rc.extend(ctx, time.Now())
			rc.report(ctx)
		}
	}
}

// gather returns a handled message, and those that are handled soon after it.
func (rc *receiver) gather(ctx context.Context, first provider.Message) []provider.Message {
	all, soon := []provider.Message{first}, time.NewTimer(gatherFor)
	defer soon.Stop()
	for len(all) < batch {
		select {
		case m := <-rc.handled:
			all = append(all, m)
		case <-soon.C:
			return all
		case <-ctx.Done():
			return all
		}
	}
	return all
}

// ack removes messages from the queue. If that fails, they come again, and cost a comparison. At the end, what ends without a result
// must not count as handled.
func (rc *receiver) ack(ctx context.Context, messages []provider.Message) {
	if ctx.Err() != nil {
		return
	}
	if err := rc.call(ctx, func(ctx context.Context, l *provider.Link) error { return provider.Ack(ctx, l, messages) }); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Info("cannot remove messages from the queue; they come again", "eventSource", client.ObjectKeyFromObject(rc.source), "error", provider.Safe(err).Error())
	}
}

// extend puts off the delivery again of the messages that are not yet handled.
func (rc *receiver) extend(ctx context.Context, now time.Time) {
	var due []provider.Message
	rc.mu.Lock()
	for receipt, d := range rc.open {
		switch {
		case now.Sub(d.received) > longest:
			delete(rc.open, receipt)
		case now.Sub(d.held) > provider.Hold/3:
			d.held = now
			due = append(due, d.message)
		}
	}
	rc.mu.Unlock()
	for len(due) > 0 {
		some := due[:min(batch, len(due))]
		due = due[len(some):]
		_ = rc.call(ctx, func(ctx context.Context, l *provider.Link) error { return provider.Extend(ctx, l, some) }) // They come again.
	}
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
