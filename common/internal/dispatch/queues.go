package dispatch

import (
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// entry is one read that somebody waits for.
type entry struct {
	read    provider.Read
	since   time.Time
	urgent  bool
	sent    bool
	tickets []*Ticket
}

// before reports whether an entry goes before another of its queue.
func (e *entry) before(o *entry) bool {
	if e.urgent != o.urgent {
		return e.urgent
	}
	return e.since.Before(o.since)
}

// queues hold what was not sent yet, oldest first: urgent and normal the reads of secrets.
type queues struct{ urgent, normal, searches []*entry }

func (q *queues) of(e *entry) *[]*entry {
	switch {
	case e.read.Search != (provider.Search{}):
		return &q.searches
	case e.urgent:
		return &q.urgent
	}
	return &q.normal
}

// add puts an entry in its queue. One that has become urgent meanwhile keeps its place in
// time; among searches those that are urgent go first.
func (q *queues) add(e *entry) {
	to := q.of(e)
	i := len(*to)
	for i > 0 && e.before((*to)[i-1]) {
		i--
	}
	*to = slices.Insert(*to, i, e)
}

func (q *queues) remove(e *entry) {
	from := q.of(e)
	*from = slices.DeleteFunc(*from, func(x *entry) bool { return x == e })
}

// batch takes up to size reads of secrets that are to be sent, urgent ones first.
func (q *queues) batch(size int) []*entry {
	batch := make([]*entry, 0, size)
	for _, from := range []*[]*entry{&q.urgent, &q.normal} {
		for len(*from) > 0 && len(batch) < size {
			batch = append(batch, first(from))
		}
	}
	return batch
}

// search takes the next search that is to be sent.
func (q *queues) search() *entry { return first(&q.searches) }

func first(from *[]*entry) *entry {
	e := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	e.sent = true
	return e
}

// giveUp takes out all for which which is true, as if they had been sent.
func (q *queues) giveUp(which func(*entry) bool) (out []*entry) {
	for _, from := range []*[]*entry{&q.urgent, &q.normal, &q.searches} {
		*from = slices.DeleteFunc(*from, func(e *entry) bool {
			if !which(e) {
				return false
			}
			e.sent = true
			out = append(out, e)
			return true
		})
	}
	return out
}

// reads returns since when the oldest read of a secret waits, and how many do.
func (q *queues) reads() (first time.Time, count int) { return oldest(q.urgent, q.normal) }

// all returns since when the oldest read or search waits, and how many do.
func (q *queues) all() (first time.Time, count int) { return oldest(q.urgent, q.normal, q.searches) }

func oldest(queues ...[]*entry) (first time.Time, count int) {
	for _, q := range queues {
		if len(q) > 0 && (count == 0 || q[0].since.Before(first)) {
			first = q[0].since
		}
		count += len(q)
	}
	return first, count
}
