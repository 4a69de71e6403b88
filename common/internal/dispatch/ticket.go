package dispatch

import "github.com/direct-secrets/direct-secrets/common/provider"

// A Ticket stands for secrets that were asked for.
type Ticket struct {
	loader  *Loader
	results map[provider.Read]provider.Answer
	answers []*answer
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

// hold keeps an answer for as long as the ticket is not taken.
func (t *Ticket) hold(a *answer) {
	a.holders++
	t.answers = append(t.answers, a)
}

// deliver hands one result over and reports whether the ticket is complete with it, and somebody wants it.
func (t *Ticket) deliver(read provider.Read, a provider.Answer) bool {
	t.results[read] = a
	t.missing--
	if t.missing > 0 {
		return false
	}
	if t.taken {
		t.results = nil
	}
	return !t.taken
}
