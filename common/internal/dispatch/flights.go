package dispatch

import (
	"slices"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// sharedFor is the maximum age of an answer that later requests share.
const sharedFor = time.Second

// apart is the least time between two reads of one secret, as long as requests wait for the first or hold its answer. Many
// objects that change one after another so share the second read.
const apart = 200 * time.Millisecond

// flights are the reads that requests wait for, shared by all requests for the same secret, and the answers that are
// held.
type flights struct {
	queues
	// entries are the reads that further requests join.
	entries map[provider.Read]*entry
	// answers are those that a caller has not released yet.
	answers map[provider.Read]*answer
	// tenant counts the bytes of all held answers.
	tenant *quota.Tenant
}

// answer is a result that some requests hold. Objects that are due at the same time do not all ask before the provider
// has answered the first. While a request holds the answer, the others share it.
type answer struct {
	read    provider.Read
	answer  provider.Answer
	at      time.Time
	started time.Time
	holders int
}

// size returns the approximate size of an answer, in bytes.
func size(a provider.Answer) int64 {
	n := a.Value.Size()
	for _, v := range a.Found {
		n += v.Size()
	}
	return int64(n)
}

// join adds a request to a read that has not started before after, or gives it the held answer of one. A new read that must wait
// is returned with the time until the caller is to add it.
func (f *flights) join(read provider.Read, u Urgency, after time.Time, r *request) (late *entry, wait time.Duration) {
	now := time.Now()
	a := f.answers[read]
	if a != nil && !a.started.Before(after) && now.Sub(a.at) < sharedFor {
		r.accept(a)
		r.arrived()
		return nil, 0
	}
	e := f.entries[read]
	if e == nil || (e.sent && e.started.Before(after)) {
		former := now.Add(-apart)
		if e != nil {
			former = e.started
		} else if a != nil {
			former = a.started
		}
		// The requests of a replaced entry that was already sent still get its answer.
		e = &entry{read: read, since: now, urgent: u > Periodic}
		f.entries[read] = e
		if wait = former.Add(apart).Sub(now); wait > 0 {
			e.late, late = true, e
		} else {
			f.add(e)
		}
	}
	if u > Periodic && !e.urgent && !e.sent {
		f.remove(e)
		e.urgent = true
		if !e.late {
			f.add(e)
		}
	}
	e.requests = append(e.requests, r)
	return late, wait
}

// addLate adds an entry whose time has come, unless no request wants it any longer.
func (f *flights) addLate(e *entry) {
	if e.late = false; f.entries[e.read] == e && len(e.requests) > 0 {
		f.add(e)
	}
}

// removeRequest removes a request from a read that was not sent yet, and reports whether the request was part of it.
func (f *flights) removeRequest(read provider.Read, r *request) bool {
	e := f.entries[read]
	if e == nil || e.sent || !slices.Contains(e.requests, r) {
		return false
	}
	e.requests = slices.DeleteFunc(e.requests, func(x *request) bool { return x == r })
	if len(e.requests) == 0 {
		f.remove(e)
		delete(f.entries, read)
	}
	return true
}

// land delivers answers to the requests of entries.
func (f *flights) land(batch []*entry, answers []provider.Answer, now time.Time) {
	for i, e := range batch {
		if f.entries[e.read] == e {
			delete(f.entries, e.read)
		}
		a := &answer{read: e.read, answer: answers[i], at: now, started: e.started}
		for _, r := range e.requests {
			r.accept(a)
			f.limit(r)
			r.arrived()
		}
		if a.holders > 0 {
			if newer := f.answers[e.read]; newer == nil || !a.started.Before(newer.started) {
				f.answers[e.read] = a
			}
			f.tenant.Add(size(a.answer))
		}
		e.requests = nil
	}
}

// limit fails the unsent reads of a request that has exceeded maxRequest.
func (f *flights) limit(r *request) {
	if r.left || r.bytes <= maxRequest {
		return
	}
	for read := range r.results {
		if f.removeRequest(read, r) {
			r.results[read] = provider.Answer{Err: errTooMuch}
			r.arrived()
		}
	}
}

// letGo releases the answers that a request held, and drops those without another holder.
func (f *flights) letGo(held []*answer) {
	for _, a := range held {
		if a.holders--; a.holders > 0 {
			continue
		}
		f.tenant.Add(-size(a.answer))
		if f.answers[a.read] == a {
			delete(f.answers, a.read)
		}
	}
}
