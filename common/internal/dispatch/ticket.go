package dispatch

import (
	"github.com/direct-secrets/direct-secrets/common/internal/trace"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// A Ticket is a request for secrets.
type Ticket struct {
	loader  *Loader
	results map[provider.Read]provider.Answer
	answers []*answer
	// bytes is the size of all answers.
	bytes   int64
	missing int
	taken   bool
	done    func()
	// trace is the span of the fetch.
	trace trace.Parent
}

// Take returns the results and releases them; false while an answer is missing. Every Ticket must be taken or
// dropped, because the number of held Tickets is limited.
func (t *Ticket) Take() (map[provider.Read]provider.Answer, bool) {
	t.loader.mu.Lock()
	defer t.loader.mu.Unlock()
	if t.missing > 0 {
		return nil, false
	}
	t.releaseLocked()
	return t.results, true
}

// Failed reports whether one of the results so far is an error.
func (t *Ticket) Failed() bool {
	t.loader.mu.Lock()
	defer t.loader.mu.Unlock()
	for _, r := range t.results {
		if r.Err != nil {
			return true
		}
	}
	return false
}

// Drop releases the results, now and as they arrive. A read that was not sent yet and has no other ticket is not
// made.
func (t *Ticket) Drop() {
	t.loader.mu.Lock()
	defer t.loader.mu.Unlock()
	if t.missing > 0 {
		t.taken = true
		t.letGoLocked()
		for read := range t.results {
			t.loader.flights.leave(read, t)
		}
		t.loader.closeIfIdleLocked()
		return
	}
	t.releaseLocked()
}

func (t *Ticket) releaseLocked() {
	if !t.taken {
		t.taken = true
		t.loader.pace.held--
		t.letGoLocked()
		t.loader.pumpLocked()
	}
}

func (t *Ticket) letGoLocked() {
	t.loader.flights.letGo(t.answers)
	t.answers = nil
}

// maxTicket limits the bytes that are read for one object. A Secret holds a quarter of it.
const maxTicket = 4 << 20

var errTooMuch = provider.NewError(provider.Invalid,
	"the object reads more than %d MiB in total, and a Secret holds 1 MiB; read less, or split the object", maxTicket>>20)

// giveUp fails the unsent reads of a ticket that has exceeded maxTicket.
func (t *Ticket) giveUp() {
	if t.taken || t.bytes <= maxTicket {
		return
	}
	for read := range t.results {
		if t.loader.flights.leave(read, t) {
			t.results[read] = provider.Answer{Err: errTooMuch}
			t.missing--
		}
	}
}

// accept stores an answer, and holds it until the ticket is taken.
func (t *Ticket) accept(a *answer) {
	if t.bytes += size(a.answer); t.bytes > maxTicket {
		t.results[a.read] = provider.Answer{Err: errTooMuch}
		return
	}
	t.results[a.read] = a.answer
	a.holders++
	t.answers = append(t.answers, a)
}

// deliver stores one result. It reports whether the ticket is then complete, and was not dropped.
func (t *Ticket) deliver(a *answer) bool {
	t.missing--
	switch {
	case !t.taken:
		t.accept(a)
		t.giveUp()
	case t.missing == 0:
		t.results = nil
	}
	return t.missing == 0 && !t.taken
}
