package dispatch

import (
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// entry is one read that requests wait for.
type entry struct {
	read    provider.Read
	since   time.Time
	urgent  bool
	sent    bool
	started time.Time // when it was sent
	// late is true as long as it is in no queue, because the same secret was read a moment ago.
	late     bool
	requests []*request
}

// before reports whether an entry comes before another one in its queue.
func (e *entry) before(o *entry) bool {
	if e.urgent != o.urgent {
		return e.urgent
	}
	return e.since.Before(o.since)
}

// queues hold the entries that were not sent yet, oldest first. urgent and normal hold reads of secrets.
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

// add inserts an entry into its queue. An entry that became urgent keeps its place by time. Urgent searches come
// before other searches.
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

// batch removes up to size reads of secrets to send, urgent ones first.
func (q *queues) batch(size int) []*entry {
	batch := make([]*entry, 0, size)
	for _, from := range []*[]*entry{&q.urgent, &q.normal} {
		for len(*from) > 0 && len(batch) < size {
			batch = append(batch, first(from))
		}
	}
	return batch
}

// search removes the next search to send.
func (q *queues) search() *entry { return first(&q.searches) }

func first(from *[]*entry) *entry {
	e := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	e.sent, e.started = true, time.Now()
	return e
}

// giveUp removes all entries that match the predicate, as if they had been sent.
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

// reads returns since when the oldest read of a secret waits, and the number of waiting reads.
func (q *queues) reads() (first time.Time, count int) { return oldest(q.urgent, q.normal) }

// all returns since when the oldest read or search waits, and the number of both.
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
