package dispatch

import (
	"context"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// request is one call of Read. The mutex of its Loader guards it.
type request struct {
	results map[provider.Read]provider.Answer
	answers []*answer
	// bytes is the size of all answers.
	bytes   int64
	missing int
	// done is closed when every secret has its answer.
	done chan struct{}
	// left is true once the caller does not want the results any longer.
	left bool
	// fetch is the span of the caller.
	fetch trace.Parent
}

// Read reads secrets, and waits for the answers or for the end of ctx. Requests share reads, but none that started before
// after. The answers count for the tenant until release is
// called; it is safe to call it twice.
func (l *Loader) Read(ctx context.Context, reads []provider.Read, u Urgency, after time.Time) (answers map[provider.Read]provider.Answer, release func(), err error) {
	r := l.start(trace.From(ctx), reads, u, after)
	return r.wait(ctx, func() { l.releaseRequest(r) })
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

func (l *Loader) start(fetch trace.Parent, reads []provider.Read, u Urgency, after time.Time) *request {
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
		if e, wait := l.flights.join(read, u, after, r); e != nil {
			time.AfterFunc(wait, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.flights.addLate(e)
				l.pumpLocked()
			})
		}
	}
	r.arrived()
	l.pumpLocked()
	return r
}

// releaseRequest releases the answers of a request, and those that arrive later. A read that was not sent yet and has no other
// request is not made.
func (l *Loader) releaseRequest(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.left {
		return
	}
	r.left = true
	l.flights.letGo(r.answers)
	r.answers = nil
	if r.missing == 0 {
		l.pumpLocked() // There may be room for the next answer.
		return
	}
	for read := range r.results {
		l.flights.removeRequest(read, r)
	}
	l.closeIfIdleLocked()
}

// arrived counts one more read that has its result.
func (r *request) arrived() {
	if r.missing--; r.missing == 0 {
		close(r.done)
	}
}

// maxRequest limits the bytes that are read for one object. A Secret holds a quarter of it.
const maxRequest = 4 << 20

var errTooMuch = provider.NewError(provider.Invalid,
	"the object reads more than %d MiB in total, and a Secret holds 1 MiB; read less, or split the object", maxRequest>>20)

// accept stores a result, and holds its answer until the caller leaves. A caller that has left gets nothing: it may read
// the results.
func (r *request) accept(a *answer) {
	if r.left {
		return
	}
	if r.bytes += size(a.answer); r.bytes > maxRequest {
		r.results[a.read] = provider.Answer{Err: errTooMuch}
		return
	}
	r.results[a.read] = a.answer
	a.holders++
	r.answers = append(r.answers, a)
}
