package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// heldBackFor is how long a request waits for a provider that throttles before it fails, so that
// its object says why it waits.
const heldBackFor = 30 * time.Second

// pumpLocked sends what may be sent now, and arms the timer for the rest.
func (l *Loader) pumpLocked() {
	wait := l.pumpReadsLocked()
	if w := l.pumpSearchesLocked(); w > 0 && (wait == 0 || w < wait) {
		wait = w
	}
	if wait > 0 {
		l.armLocked(wait)
	}
}

// pumpReadsLocked sends reads of secrets and returns when to look again, as readyLocked does.
func (l *Loader) pumpReadsLocked() time.Duration {
	for {
		wait, ready := l.readyLocked(time.Now())
		if !ready {
			return wait
		}
		batch := l.nextLocked()
		if len(batch) == 0 {
			return 0
		}
		l.calls++
		go l.call(l.client, batch)
	}
}

// readyLocked says whether a batch may go now, and otherwise when to look again; zero means that
// something else will pump: a call that ends, a ticket that is taken, or a request.
func (l *Loader) readyLocked(now time.Time) (time.Duration, bool) {
	first, count := l.waitingLocked()
	if count > 0 && l.client == nil {
		l.dialLocked()
		return 0, false
	}
	if count == 0 || l.calls >= l.maxCallsLocked() || l.held >= l.opts.MaxHeld {
		return 0, false
	}
	if wait := l.limit.wait(now); wait > 0 {
		return l.failHeldBackLocked(now, wait), false
	}
	if count >= l.batchSizeLocked() {
		return 0, l.limit.take(now)
	}
	if wait := first.Add(l.windowLocked(now, count)).Sub(now); wait > 0 {
		return min(wait, busyWindow), false // The load may go before.
	}
	return 0, l.limit.take(now)
}

// waitingLocked returns since when the oldest read of a secret waits, and how many do.
func (l *Loader) waitingLocked() (first time.Time, count int) { return oldest(l.urgent, l.normal) }

func oldest(queues ...[]*entry) (first time.Time, count int) {
	for _, q := range queues {
		if len(q) > 0 && (count == 0 || q[0].since.Before(first)) {
			first = q[0].since
		}
		count += len(q)
	}
	return first, count
}

// windowLocked is how long the first of count requests waits for more.
func (l *Loader) windowLocked(now time.Time, count int) time.Duration {
	if l.batchSizeLocked() == 1 {
		return 0
	}
	switch {
	case l.opts.Busy.loaded():
		return loadedWindow
	case count > 1 || l.opts.Busy.is(now):
		return busyWindow
	}
	return idleWindow
}

// nextLocked takes the next batch from the queues, urgent requests first.
func (l *Loader) nextLocked() []*entry {
	size := l.batchSizeLocked()
	batch := make([]*entry, 0, size)
	for _, q := range []*[]*entry{&l.urgent, &l.normal} {
		for len(*q) > 0 && len(batch) < size {
			e := (*q)[0]
			(*q)[0] = nil
			*q = (*q)[1:]
			e.sent = true
			batch = append(batch, e)
		}
	}
	return batch
}

func (l *Loader) armLocked(wait time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.pumpLocked()
		})
		return
	}
	l.timer.Reset(wait)
}

// call makes one call to the provider and hands the results out.
func (l *Loader) call(c provider.Client, batch []*entry) {
	ctx, cancel := context.WithTimeout(context.Background(), l.opts.CallTimeout)
	defer cancel()
	refs := make([]provider.Ref, len(batch))
	for i, e := range batch {
		refs[i] = e.read.Ref
	}
	results := bounded(ctx, l.kind, c, refs)

	l.mu.Lock()
	l.calls--
	l.limit.learn(time.Now(), results)
	if len(batch) > 1 && answered(results) {
		l.opts.Busy.mark(time.Now())
	}
	answers := make([]provider.Answer, len(results))
	for i, r := range results {
		answers[i] = provider.Answer{Value: r.Value, Err: r.Err}
	}
	finished := l.finishLocked(batch, answers)
	l.pumpLocked()
	l.mu.Unlock()

	for _, t := range finished {
		t.done()
	}
}

// answered reports whether the provider did its work. One that hangs or throttles says nothing about
// the others, which must not wait longer for it.
func answered(results []provider.Result) bool {
	return !slices.ContainsFunc(results, func(r provider.Result) bool {
		c := provider.ClassOf(r.Err)
		return r.Err != nil && (c == provider.Unavailable || c == provider.Throttled)
	})
}

// dialLocked connects in the background; what waits is sent, or fails, when that has ended.
func (l *Loader) dialLocked() {
	if l.dialing {
		return
	}
	l.dialing = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), l.opts.CallTimeout)
		defer cancel()
		_, err := l.Client(ctx)

		l.mu.Lock()
		l.dialing = false
		var finished []*Ticket
		if err != nil {
			finished = l.failWaitingLocked(err, func(*entry) bool { return true })
		}
		l.pumpLocked()
		l.mu.Unlock()
		for _, t := range finished {
			t.done()
		}
	}()
}

// failWaitingLocked fails the requests in the queues for which which is true.
func (l *Loader) failWaitingLocked(err error, which func(*entry) bool) []*Ticket {
	var failed []*entry
	for _, q := range []*[]*entry{&l.urgent, &l.normal, &l.searches} {
		*q = slices.DeleteFunc(*q, func(e *entry) bool {
			if !which(e) {
				return false
			}
			e.sent = true
			failed = append(failed, e)
			return true
		})
	}
	answers := make([]provider.Answer, len(failed))
	for i := range answers {
		answers[i].Err = err
	}
	return l.finishLocked(failed, answers)
}

// bounded returns when ctx ends even if the provider's code does not. What that code still yields
// is dropped.
func bounded(ctx context.Context, kind string, c provider.Client, refs []provider.Ref) []provider.Result {
	answer := make(chan []provider.Result, 1)
	err := within(ctx, func() error {
		answer <- provider.GetBatch(ctx, kind, c, refs)
		return nil
	})
	if err != nil {
		return failAll(len(refs), err)
	}
	return <-answer
}

// within runs f and returns its error, or that of ctx if it ends before.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func failAll(n int, err error) []provider.Result {
	results := make([]provider.Result, n)
	for i := range results {
		results[i].Err = err
	}
	return results
}

func (l *Loader) finishLocked(batch []*entry, answers []provider.Answer) []*Ticket {
	var finished []*Ticket
	for i, e := range batch {
		if l.entries[e.read] == e {
			delete(l.entries, e.read)
		}
		a := &answer{read: e.read, answer: answers[i], at: time.Now()}
		for _, t := range e.tickets {
			if !t.taken {
				t.holdLocked(a)
			}
			if t.deliverLocked(e.read, answers[i]) {
				finished = append(finished, t)
			}
		}
		if a.holders > 0 {
			l.answers[e.read] = a
		}
		e.tickets = nil
	}
	l.closeIfIdleLocked()
	return finished
}

func (l *Loader) maxCallsLocked() int {
	if l.opts.MaxCalls > 0 {
		return l.opts.MaxCalls
	}
	if l.batchSizeLocked() == 1 {
		return 32
	}
	return 10
}

// batchSizeLocked is the size of a full batch.
func (l *Loader) batchSizeLocked() int { return provider.BatchSize(l.client) }
