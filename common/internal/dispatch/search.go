package dispatch

import (
	"context"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Bounds of searches.
const (
	// maxSearches of one store are under way at once: each may be many calls, and shall leave room
	// for what reads single secrets.
	maxSearches = 2
	// maxFound is the number of secrets that a search may yield.
	maxFound = 10_000
	// maxFoundBytes bounds what a search may hold in memory. A Secret holds a sixteenth of it.
	maxFoundBytes = 16 << 20
)

// pumpSearchesLocked sends the searches that may be sent now, and returns when to look again; zero
// means that something else will pump.
func (l *Loader) pumpSearchesLocked() time.Duration {
	for len(l.searches) > 0 && l.searching < maxSearches && l.held < l.opts.MaxHeld {
		if l.client == nil {
			l.dialLocked()
			return 0
		}
		now := time.Now()
		if wait := l.limit.wait(now); wait > 0 {
			return l.failHeldBackLocked(now, wait)
		}
		l.limit.take(now)
		e := l.searches[0]
		l.searches[0] = nil
		l.searches = l.searches[1:]
		e.sent = true
		l.searching++
		go l.search(l.client, e)
	}
	return 0
}

// search runs one search and hands its answer out.
func (l *Loader) search(c provider.Client, e *entry) {
	ctx, cancel := context.WithTimeout(context.Background(), l.opts.SearchTimeout)
	defer cancel()
	answer := make(chan provider.Answer, 1)
	err := within(ctx, func() error {
		a := l.find(ctx, c, e.read.Search)
		answer <- a
		return a.Err
	})
	a := provider.Answer{Err: err}
	if err == nil {
		a = <-answer
	}

	l.mu.Lock()
	l.searching--
	l.limit.learn(time.Now(), []provider.Result{{Err: a.Err}})
	finished := l.finishLocked([]*entry{e}, []provider.Answer{a})
	l.pumpLocked()
	l.mu.Unlock()
	for _, t := range finished {
		t.done()
	}
}

// find returns all that matches, or nothing but an error.
func (l *Loader) find(ctx context.Context, c provider.Client, s provider.Search) provider.Answer {
	q, err := s.Query()
	if err != nil {
		return provider.Answer{Err: err}
	}
	var found []provider.Value
	size := 0
	for v, err := range provider.Find(ctx, l.kind, c, q) {
		if err != nil {
			return provider.Answer{Err: err}
		}
		size += len(v.Data)
		switch {
		case len(found) >= maxFound:
			return provider.Answer{Err: provider.NewError(provider.Invalid, "find: more than %d secrets match; narrow path, name or tags", maxFound)}
		case size > maxFoundBytes:
			return provider.Answer{Err: provider.NewError(provider.Invalid, "find: what matches is more than %d MiB in all; narrow path, name or tags", maxFoundBytes>>20)}
		}
		found = append(found, v)
	}
	return provider.Answer{Found: found}
}
