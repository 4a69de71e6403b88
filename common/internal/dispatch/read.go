package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// sharedFor is the maximum age of an answer that later requests share.
	sharedFor = time.Second
	// apart is the least time between two reads of one secret, as long as requests wait for the first or hold its answer.
	// Many objects that change one after another so share the second read.
	apart = 200 * time.Millisecond
	// maxRequest limits the bytes that are read for one object. A Secret holds a quarter of it.
	//limit:reads All values that one object reads | unit=bytes | `Invalid`; the rest is not read.
	maxRequest = 4 << 20
)

var errTooMuch = provider.NewError(provider.Invalid,
	"the object reads more than %d MiB in total, and a Secret holds 1 MiB; read less, or split the object", maxRequest>>20)

// entry is one read or search, and later its answer. Objects that are due at the same time do not all ask before the
// provider has answered the first, so requests share the answer as long as another one holds it.
type entry struct {
	read   provider.Read
	since  time.Time
	urgent bool
	// notBefore is when it can be sent, because the same secret was read a moment ago.
	notBefore time.Time
	// started is when it was sent, and answered is when it got its answer.
	started, answered time.Time
	answer            provider.Answer
	// requests wait for the answer, or hold it.
	requests []*request
}

// waits reports whether an entry is still to be sent.
func (e *entry) waits() bool {
	return e.started.IsZero() && e.answered.IsZero() && len(e.requests) > 0
}

// isSearch reports whether an entry is a search, and not the read of one secret.
func (e *entry) isSearch() bool { return e.read.Search != (provider.Search{}) }

// shares reports whether a request that needs a read not before after can join an entry.
func (e *entry) shares(now, after time.Time) bool {
	return e.waits() || !e.started.Before(after) && (e.answered.IsZero() || now.Sub(e.answered) < sharedFor)
}

// size returns the approximate size of an answer, in bytes.
func size(a provider.Answer) int64 {
	n := a.Value.Size()
	for _, v := range a.Found {
		n += v.Size()
	}
	return int64(n)
}

// request is one call of Read. The mutex of its Loader guards it.
type request struct {
	results map[provider.Read]provider.Answer
	// entries are those of its reads, until the caller leaves.
	entries []*entry
	// bytes is the size of all answers.
	bytes   int64
	missing int
	// done is closed when every secret has its answer.
	done chan struct{}
	// fetch is the span of the caller.
	fetch trace.Parent
}

// Read reads secrets, and waits for the answers or for the end of ctx. Urgent reads come before others. Requests share
// reads, but none that started before after. The answers count for the tenant until release is called; it is safe to
// call it twice.
func (l *Loader) Read(ctx context.Context, reads []provider.Read, urgent bool, after time.Time) (answers map[provider.Read]provider.Answer, release func(), err error) {
	r := l.start(trace.From(ctx), reads, urgent, after)
	return r.wait(ctx, func() { l.release(r) })
}

// wait is Read for a request that was started.
func (r *request) wait(ctx context.Context, release func()) (map[provider.Read]provider.Answer, func(), error) {
	select {
	case <-r.done:
		return r.results, release, nil
	case <-ctx.Done():
		release()
		return nil, release, ctx.Err()
	}
}

func (l *Loader) start(fetch trace.Parent, reads []provider.Read, urgent bool, after time.Time) *request {
	r := &request{results: make(map[provider.Read]provider.Answer, len(reads)), done: make(chan struct{}), fetch: fetch}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.missing = 1 // Until all reads are requested.
	for _, read := range reads {
		if _, twice := r.results[read]; twice {
			continue
		}
		r.results[read] = provider.Answer{}
		r.missing++
		l.joinLocked(r, read, urgent, after)
	}
	r.arrived()
	l.pumpLocked()
	return r
}

// release releases the answers of a request, and those that arrive later. A read that was not sent yet and has no other
// request is not made.
func (l *Loader) release(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range r.entries {
		l.removeLocked(r, e)
	}
	if r.entries = nil; r.missing == 0 {
		l.pumpLocked() // There may be room for the next answer.
		return
	}
	l.waiting = unsent(l.waiting)
	l.closeIfIdleLocked()
}

// unsent removes the entries that no longer wait.
func unsent(waiting []*entry) []*entry {
	return slices.DeleteFunc(waiting, func(e *entry) bool { return !e.waits() })
}

// joinLocked adds a request to the latest entry of its read, or to a new one. The requests of the former entry still get
// its answer.
func (l *Loader) joinLocked(r *request, read provider.Read, urgent bool, after time.Time) {
	now, e := time.Now(), l.entries[read]
	if e == nil || !e.shares(now, after) {
		n := &entry{read: read, since: now}
		if e != nil {
			n.notBefore = e.started.Add(apart)
			if n.notBefore.After(now) {
				time.AfterFunc(n.notBefore.Sub(now), l.pump)
			}
		}
		e = n
		l.entries[read] = e
		l.waiting = append(l.waiting, e)
	}
	e.urgent = e.urgent || urgent
	e.requests = append(e.requests, r)
	r.entries = append(r.entries, e)
	if !e.answered.IsZero() {
		l.deliverLocked(r, e)
	}
}

// landLocked delivers the answer of an entry to its requests.
func (l *Loader) landLocked(e *entry, a provider.Answer) {
	e.answer, e.answered = a, time.Now()
	l.tenant.Add(size(a))
	for _, r := range slices.Clone(e.requests) {
		l.deliverLocked(r, e)
	}
	l.dropUnusedLocked(e)
}

// deliverLocked gives the answer of an entry to a request, which holds it until the caller leaves. A request that
// exceeds maxRequest holds no further answers, and its unsent reads fail.
func (l *Loader) deliverLocked(r *request, e *entry) {
	if r.bytes += size(e.answer); r.bytes <= maxRequest {
		r.results[e.read] = e.answer
		r.arrived()
		return
	}
	r.entries = slices.DeleteFunc(r.entries, func(o *entry) bool {
		if o != e && !o.waits() {
			return false
		}
		l.removeLocked(r, o)
		r.results[o.read] = provider.Answer{Err: errTooMuch}
		r.arrived()
		return true
	})
}

// removeLocked removes a request from an entry, and drops that if it is not needed.
func (l *Loader) removeLocked(r *request, e *entry) {
	e.requests = slices.DeleteFunc(e.requests, func(x *request) bool { return x == r })
	l.dropUnusedLocked(e)
}

// dropUnusedLocked drops an entry without requests, and its answer. An entry under way stays until it is answered.
func (l *Loader) dropUnusedLocked(e *entry) {
	underWay := !e.started.IsZero() && e.answered.IsZero()
	if len(e.requests) > 0 || underWay {
		return
	}
	l.tenant.Add(-size(e.answer))
	e.answer = provider.Answer{}
	if l.entries[e.read] == e {
		delete(l.entries, e.read)
	}
}

// arrived counts one more read that has its result.
func (r *request) arrived() {
	if r.missing--; r.missing == 0 {
		close(r.done)
	}
}
