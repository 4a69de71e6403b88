package dispatch

import (
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// sharedFor bounds the age of an answer that is shared.
const sharedFor = time.Second

// flights are the reads that somebody waits for, one for all who ask for the same, and the answers to those before.
type flights struct {
	queues
	// entries are those of which the next who asks takes part.
	entries map[provider.Read]*entry
	// answers are those that a reconcile has yet to take.
	answers map[provider.Read]*answer
	// share counts the bytes of all answers that tickets hold.
	share *budget.Share
}

// answer is a result that some tickets hold. Objects that are due together do not all ask before
// the provider has answered the first; as long as one of them holds the answer, the others share it.
type answer struct {
	read    provider.Read
	answer  provider.Answer
	at      time.Time
	holders int
}

// size returns how many bytes an answer takes, about.
func size(a provider.Answer) int64 {
	n := len(a.Value.Data)
	for _, v := range a.Found {
		n += len(v.Data)
	}
	return int64(n)
}

// join has a ticket take part in a read, or in the answer to one.
func (f *flights) join(read provider.Read, u Urgency, t *Ticket, now time.Time) {
	if a := f.answers[read]; a != nil && u != Fresh && now.Sub(a.at) < sharedFor {
		t.missing--
		t.accept(a)
		return
	}
	e := f.entries[read]
	if e == nil || (e.sent && u == Fresh) {
		// A sent entry that is replaced here still serves those who wait for it.
		e = &entry{read: read, since: now, urgent: u > Periodic}
		f.entries[read] = e
		f.add(e)
	}
	if u > Periodic && !e.urgent && !e.sent {
		f.remove(e)
		e.urgent = true
		f.add(e)
	}
	e.tickets = append(e.tickets, t)
}

// leave takes a ticket off a read that was not sent yet, and reports whether it was on it.
func (f *flights) leave(read provider.Read, t *Ticket) bool {
	e := f.entries[read]
	if e == nil || e.sent || !slices.Contains(e.tickets, t) {
		return false
	}
	e.tickets = slices.DeleteFunc(e.tickets, func(x *Ticket) bool { return x == t })
	if len(e.tickets) == 0 {
		f.remove(e)
		delete(f.entries, read)
	}
	return true
}

// land hands the answers to entries out, and returns the tickets that are complete with them.
func (f *flights) land(batch []*entry, answers []provider.Answer, now time.Time) (finished []*Ticket) {
	for i, e := range batch {
		if f.entries[e.read] == e {
			delete(f.entries, e.read)
		}
		a := &answer{read: e.read, answer: answers[i], at: now}
		for _, t := range e.tickets {
			if t.deliver(a) {
				finished = append(finished, t)
			}
		}
		if a.holders > 0 {
			f.answers[e.read] = a
			f.share.Add(size(a.answer))
		}
		e.tickets = nil
	}
	return finished
}

// letGo forgets those of the answers that a ticket held that nobody else holds.
func (f *flights) letGo(held []*answer) {
	for _, a := range held {
		if a.holders--; a.holders > 0 {
			continue
		}
		f.share.Add(-size(a.answer))
		if f.answers[a.read] == a {
			delete(f.answers, a.read)
		}
	}
}
