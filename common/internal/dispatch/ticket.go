package dispatch

import "github.com/direct-secrets/direct-secrets/common/provider"

// A Ticket stands for secrets that were asked for.
type Ticket struct {
	loader  *Loader
	results map[provider.Read]provider.Answer
	answers []*answer
	// bytes are those of all answers.
	bytes   int64
	missing int
	taken   bool
	done    func()
}

// Take returns the results and lets the loader forget them; false while some are still missing.
// Every Ticket must be taken or dropped, since the loader bounds what it holds.
func (t *Ticket) Take() (map[provider.Read]provider.Answer, bool) {
	t.loader.mu.Lock()
	defer t.loader.mu.Unlock()
	if t.missing > 0 {
		return nil, false
	}
	t.releaseLocked()
	return t.results, true
}

// Failed reports whether a result that is there is an error.
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

// Drop gives the ticket up: results that are there, and those that still come, are forgotten. What
// nobody else waits for, and was not sent yet, is not read.
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

// maxTicket bounds the bytes that are read for one object. A Secret holds a quarter of it.
const maxTicket = 4 << 20

var errTooMuch = provider.NewError(provider.Invalid,
	"what the object reads is more than %d MiB in all, and a Secret holds 1 MiB; read less, or split the object", maxTicket>>20)

// giveUp fails what was not sent yet of a ticket that has more than it may already.
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

// accept takes an answer, and holds it for as long as the ticket is not taken.
func (t *Ticket) accept(a *answer) {
	if t.bytes += size(a.answer); t.bytes > maxTicket {
		t.results[a.read] = provider.Answer{Err: errTooMuch}
		return
	}
	t.results[a.read] = a.answer
	a.holders++
	t.answers = append(t.answers, a)
}

// deliver hands one result over and reports whether the ticket is complete with it, and somebody wants it.
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
