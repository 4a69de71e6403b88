package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// heldBackFor is how long a request waits for a provider that throttles, or for the limits of its tenant, before it
	// fails, so that its object reports why it waits.
	//limit:reads Time that a read waits for its tenant | The call fails, and is retried.
	heldBackFor = 30 * time.Second
	// maxSearches is the maximum number of concurrent searches of one store: each can be many calls, and must leave room
	// for the reads of single secrets.
	maxSearches = 2
)

func (l *Loader) pump() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pumpLocked()
}

// pumpLocked makes the calls that can be made now, and sets the timer for the others. It ends every change of the
// entries.
func (l *Loader) pumpLocked() {
	l.waiting = unsent(l.waiting)
	if l.link == nil && len(l.waiting) > 0 && !l.dialing {
		l.dialing = true
		go l.dial()
	}
	if l.link != nil {
		reads, searches := l.sendLocked(false), l.sendLocked(true)
		if again := min(reads, searches); again < never {
			l.timer.Reset(again)
		}
	}
	l.closeIfIdleLocked()
}

// dial connects in the background. After that, the waiting requests are sent, or fail with its error.
func (l *Loader) dial() {
	ctx, cancel := context.WithTimeout(context.Background(), l.opts.CallTimeout)
	defer cancel()
	_, err := l.Link(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialing = false
	if err != nil {
		l.failLocked(time.Now(), err)
	}
	l.pumpLocked()
}

// Concurrent reads of one store.
const (
	// singleReads is for a client that reads one secret with each call.
	//limit:reads Concurrent reads of a store | The read waits.
	singleReads = 32
	// batchReads is for one that reads many.
	//limit:reads Concurrent reads of a store that reads many secrets with one call | The read waits.
	batchReads = 10
)

// never means that another event will pump: the end of a call, or a request.
const never = time.Hour

// sendLocked sends reads of secrets, or searches. It returns when to try again.
func (l *Loader) sendLocked(search bool) time.Duration {
	size, most := l.link.BatchSize(), l.opts.MaxCalls
	switch {
	case search:
		size, most = 1, maxSearches
	case most > 0:
	case size == 1:
		most = singleReads
	default:
		most = batchReads
	}
	for l.calls[search] < most {
		now := time.Now()
		batch := next(l.waiting, now, search, size)
		if len(batch) == 0 {
			return never
		}
		if wait, err := l.heldBackLocked(now, batch[0].urgent); err != nil {
			l.failLocked(now.Add(-heldBackFor), err)
			for _, e := range l.waiting { // An older one might not be urgent.
				wait = min(wait, e.since.Add(heldBackFor).Sub(now))
			}
			return wait
		}
		oldest := slices.MinFunc(batch, func(a, b *entry) int { return a.since.Compare(b.since) })
		if wait := oldest.since.Add(l.opts.Busy.window(now, len(batch), size)).Sub(now); wait > 0 {
			return min(wait, busyWindow) // The load might end earlier.
		}
		for _, e := range batch {
			e.started = now
		}
		l.limiter.bucket.AllowN(now, 1)
		l.calls[search]++
		go l.call(traced(batch), l.link, batch)
	}
	return never
}

// next returns up to size waiting reads of secrets, or searches, whose time has come: urgent ones first, then the oldest.
func next(waiting []*entry, now time.Time, search bool, size int) (batch []*entry) {
	for _, urgent := range []bool{true, false} {
		for _, e := range waiting {
			if len(batch) < size && e.waits() && e.urgent == urgent && e.isSearch() == search && !e.notBefore.After(now) {
				batch = append(batch, e)
			}
		}
	}
	return batch
}

// heldBackLocked returns an error if no call can be made, because the provider throttles or the tenant has reached a
// limit. It returns when to try again.
func (l *Loader) heldBackLocked(now time.Time, urgent bool) (time.Duration, error) {
	if wait := l.limiter.wait(now); wait > 0 {
		err := provider.NewError(provider.Throttled, "the provider throttles the calls of this store; retrying with back-off")
		err.RetryAfter = wait
		return wait, err
	}
	// There must be room beyond the answers that walks hold. Other stores can free memory, too.
	if !l.tenant.Room(maxRequest) {
		return busyWindow, provider.ErrNoRoom
	}
	if wait := l.tenant.Wait(now, urgent); wait > 0 {
		err := provider.NewError(provider.Throttled, "%s", provider.ErrBusy.Message)
		err.RetryAfter = wait
		return wait, err
	}
	return 0, nil
}

// failLocked fails the requests that have waited since a time or for longer.
func (l *Loader) failLocked(since time.Time, err error) {
	for _, e := range l.waiting {
		if e.waits() && !e.since.After(since) {
			l.landLocked(e, provider.Answer{Err: err})
		}
	}
	l.waiting = unsent(l.waiting)
}

// call reads a batch of secrets, or makes one search, and delivers the answers. It ends at its timeout, even if the
// provider's code does not.
func (l *Loader) call(ctx context.Context, c *provider.Link, batch []*entry) {
	search, timeout, f := batch[0].isSearch(), l.opts.CallTimeout, getBatch
	if search {
		timeout, f = l.opts.SearchTimeout, l.search
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answers, err := Within(ctx, func() ([]provider.Answer, error) { return f(ctx, c, batch), nil })
	if err != nil {
		answers = slices.Repeat([]provider.Answer{{Err: err}}, len(batch))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[search]--
	l.limiter.learn(time.Now(), answers)
	if len(batch) > 1 && answered(answers) {
		l.opts.Busy.mark(time.Now())
	}
	for i, e := range batch {
		l.landLocked(e, answers[i])
	}
	l.pumpLocked()
}

func getBatch(ctx context.Context, c *provider.Link, batch []*entry) []provider.Answer {
	refs, answers := make([]provider.Ref, len(batch)), make([]provider.Answer, len(batch))
	for i, e := range batch {
		refs[i] = e.read.Ref
	}
	for i, r := range c.GetBatch(ctx, refs) {
		answers[i] = provider.Answer{Value: r.Value, Err: r.Err}
	}
	return answers
}

// traced returns the context of a call. Its span has the waiting fetches as parents.
func traced(batch []*entry) context.Context {
	var fetches []trace.Parent
	for _, e := range batch {
		for _, r := range e.requests {
			fetches = append(fetches, r.fetch)
		}
	}
	return trace.Under(context.Background(), fetches...)
}

// answered reports whether the provider has answered normally. A provider that hangs or throttles does not make the
// stores busy, so that the requests of other stores do not wait longer.
func answered(answers []provider.Answer) bool {
	return !slices.ContainsFunc(answers, func(a provider.Answer) bool {
		c := provider.ClassOf(a.Err)
		return a.Err != nil && (c == provider.Unavailable || c == provider.Throttled)
	})
}
