package dispatch

import (
	"context"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Bounds of what a search may yield.
const (
	// maxFound is the number of secrets.
	maxFound = 10_000
	// maxFoundBytes bounds what is held in memory. A Secret holds a quarter of it.
	maxFoundBytes = maxTicket
)

// search runs one search and hands its answer out.
func (l *Loader) search(c provider.Client, e *entry) {
	ctx, cancel := context.WithTimeout(l.counted(), l.opts.SearchTimeout)
	defer cancel()
	found, err := Within(ctx, func() ([]provider.Value, error) { return l.find(ctx, c, e.read.Search) })
	l.conclude(func() []*Ticket {
		l.pace.searching--
		l.pace.learn(time.Now(), []provider.Result{{Err: err}})
		answers := []provider.Answer{{Found: found, Err: err}}
		l.endedLocked(answers)
		return l.landLocked([]*entry{e}, answers)
	})
}

// find returns all that matches, or nothing but an error. What it has found counts for the store meanwhile.
func (l *Loader) find(ctx context.Context, c provider.Client, s provider.Search) ([]provider.Value, error) {
	q, err := s.Query()
	if err != nil {
		return nil, err
	}
	var found []provider.Value
	size, counted := 0, int64(0)
	defer func() { l.flights.share.Add(-counted) }()
	for v, err := range provider.Find(ctx, l.kind, c, q) {
		if err != nil {
			return nil, err
		}
		size += len(v.Data)
		switch {
		case len(found) >= maxFound:
			return nil, provider.NewError(provider.Invalid, "find: more than %d secrets match; narrow path, name or tags", maxFound)
		case size > maxFoundBytes:
			return nil, provider.NewError(provider.Invalid, "find: what matches is more than %d MiB in all; narrow path, name or tags", maxFoundBytes>>20)
		case !l.flights.share.Take(int64(len(v.Data)), maxFoundBytes):
			return nil, provider.ErrNoRoom
		}
		counted += int64(len(v.Data))
		found = append(found, v)
	}
	return found, nil
}
