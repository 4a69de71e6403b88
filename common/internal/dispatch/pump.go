package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// heldBackFor is how long a request waits for a provider that throttles, or for the limits of its tenant, before it
// fails, so that its object reports why it waits.
const heldBackFor = 30 * time.Second

// pumpLocked sends the reads and searches that can be sent now, and sets the timer for the others.
func (l *Loader) pumpLocked() {
	wait := l.pumpReadsLocked()
	if w := l.pumpSearchesLocked(); w > 0 && (wait == 0 || w < wait) {
		wait = w
	}
	if wait > 0 {
		l.armLocked(wait)
	}
}

// pumpReadsLocked sends reads of secrets. It returns when to try again, like readyLocked.
func (l *Loader) pumpReadsLocked() time.Duration {
	for {
		wait, ready := l.readyLocked(time.Now())
		if !ready {
			return wait
		}
		l.limits.calls++
		go l.call(l.link, l.flights.batch(l.link.BatchSize()))
	}
}

// readyLocked reports whether a batch can be sent now, and otherwise when to try again. Zero means that another event
// will pump: the end of a call, or a request.
func (l *Loader) readyLocked(now time.Time) (time.Duration, bool) {
	first, count := l.flights.reads()
	if count == 0 {
		return 0, false
	}
	if l.link == nil {
		l.dialLocked()
		return 0, false
	}
	size := l.link.BatchSize()
	if !l.limits.callMayGo(size) {
		return 0, false
	}
	if wait, held := l.heldBackLocked(now, len(l.flights.urgent) > 0); held {
		return wait, false
	}
	if wait := first.Add(l.opts.Busy.window(now, count, size)).Sub(now); wait > 0 {
		return min(wait, busyWindow), false // The load might end earlier.
	}
	l.limits.take(now)
	return 0, true
}

// heldBackLocked reports whether no call can be made, because the provider throttles or the tenant has reached a
// limit. It returns when to try again.
func (l *Loader) heldBackLocked(now time.Time, urgent bool) (time.Duration, bool) {
	if wait := l.limits.wait(now); wait > 0 {
		err := provider.NewError(provider.Throttled, "the provider throttles the calls of this store; retrying with back-off")
		err.RetryAfter = wait
		return l.failOldLocked(now, wait, err), true
	}
	// There must be room beyond the answers that walks hold. Other stores can free memory, too.
	if !l.flights.tenant.Room(maxRequest) {
		return l.failOldLocked(now, busyWindow, provider.ErrNoRoom), true
	}
	if wait := l.flights.tenant.Wait(now, urgent); wait > 0 {
		err := provider.NewError(provider.Throttled, "%s", provider.ErrBusy.Message)
		err.RetryAfter = wait
		return l.failOldLocked(now, wait, err), true
	}
	return 0, false
}

// pumpSearchesLocked sends the searches that can be sent now. It returns when to try again; zero means that another
// event will pump.
func (l *Loader) pumpSearchesLocked() time.Duration {
	for len(l.flights.searches) > 0 && l.limits.searchMayGo() {
		if l.link == nil {
			l.dialLocked()
			return 0
		}
		now := time.Now()
		if wait, held := l.heldBackLocked(now, l.flights.searches[0].urgent); held {
			return wait
		}
		l.limits.take(now)
		l.limits.searching++
		go l.search(l.link, l.flights.search())
	}
	return 0
}

func (l *Loader) armLocked(wait time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, func() { l.conclude(func() {}) })
		return
	}
	l.timer.Reset(wait)
}

// conclude applies the results of a call under the lock, and sends the next reads.
func (l *Loader) conclude(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	l.pumpLocked()
}

// call makes one call to the provider and delivers its results.
func (l *Loader) call(c *provider.Link, batch []*entry) {
	ctx, cancel := context.WithTimeout(l.traced(batch...), l.opts.CallTimeout)
	defer cancel()
	refs := make([]provider.Ref, len(batch))
	for i, e := range batch {
		refs[i] = e.read.Ref
	}
	results := bounded(ctx, c, refs)
	l.conclude(func() {
		l.limits.calls--
		l.limits.learn(time.Now(), results)
		if len(batch) > 1 && answered(results) {
			l.opts.Busy.mark(time.Now())
		}
		answers := make([]provider.Answer, len(results))
		for i, r := range results {
			answers[i] = provider.Answer{Value: r.Value, Err: r.Err}
		}
		l.landLocked(batch, answers)
	})
}

// traced returns the context of a call. Its span has the waiting fetches as parents.
func (l *Loader) traced(batch ...*entry) context.Context {
	ctx := context.Background()
	if !trace.On() {
		return ctx
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var fetches []trace.Parent
	for _, e := range batch {
		for _, r := range e.requests {
			fetches = append(fetches, r.fetch)
		}
	}
	return trace.Under(ctx, fetches...)
}

// answered reports whether the provider has answered normally. A provider that hangs or throttles does not make the
// stores busy, so that the requests of other stores do not wait longer.
func answered(results []provider.Result) bool {
	return !slices.ContainsFunc(results, func(r provider.Result) bool {
		c := provider.ClassOf(r.Err)
		return r.Err != nil && (c == provider.Unavailable || c == provider.Throttled)
	})
}

// dialLocked connects in the background. After that, the waiting requests are sent, or fail with its error.
func (l *Loader) dialLocked() {
	if l.dialing {
		return
	}
	l.dialing = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), l.opts.CallTimeout)
		defer cancel()
		_, err := l.Link(ctx)
		l.conclude(func() {
			if l.dialing = false; err != nil {
				l.failWaitingLocked(err, func(*entry) bool { return true })
			}
		})
	}()
}

// failOldLocked fails requests that have waited for heldBackFor, and returns when to try again.
func (l *Loader) failOldLocked(now time.Time, wait time.Duration, err error) time.Duration {
	l.failWaitingLocked(err, func(e *entry) bool { return now.Sub(e.since) >= heldBackFor })
	first, count := l.flights.all()
	if count == 0 {
		return 0
	}
	return min(wait, first.Add(heldBackFor).Sub(now))
}

// failWaitingLocked fails the requests in the queues that match the predicate.
func (l *Loader) failWaitingLocked(err error, which func(*entry) bool) {
	failed := l.flights.giveUp(which)
	l.landLocked(failed, slices.Repeat([]provider.Answer{{Err: err}}, len(failed)))
}

// landLocked delivers answers.
func (l *Loader) landLocked(batch []*entry, answers []provider.Answer) {
	l.flights.land(batch, answers, time.Now())
	l.closeIfIdleLocked()
}

// bounded returns when ctx ends, even if the provider's code does not. A later result of that code is dropped.
func bounded(ctx context.Context, c *provider.Link, refs []provider.Ref) []provider.Result {
	results, err := Within(ctx, func() ([]provider.Result, error) { return c.GetBatch(ctx, refs), nil })
	if err != nil {
		return slices.Repeat([]provider.Result{{Err: err}}, len(refs))
	}
	return results
}

// Within runs f and returns its result, or the error of ctx if that ends before.
func Within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
