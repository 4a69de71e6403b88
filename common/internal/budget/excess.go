package budget

import (
	"slices"
	"time"
)

// An Answer arrives from a provider, and counts for a Share.
type Answer interface {
	// Size returns how many bytes of it count.
	Size() int64
	// Abort ends it with an error. It may be called while it is read.
	Abort()
}

// Open registers an answer that arrives. The caller must call Close in the end.
func (s *Share) Open(a Answer) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.answers == nil {
		s.answers = map[Answer]bool{}
	}
	s.answers[a] = true
}

// Close ends the registration of an answer.
func (s *Share) Close(a Answer) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	delete(s.answers, a)
}

// excess lets one tenant at a time exceed its limits. A tenant that sends one large answer after another must not keep all
// others from it, and neither must an answer that stops in the middle.
type excess struct {
	// holder is the share that exceeds its limits now; nil if there is none.
	holder *Share
	// since is when it began, or when the last one ended.
	since time.Time
	timer *time.Timer
	// waiting are the shares that were refused since, in order.
	waiting []*Share
}

// has reports whether a share can exceed its limits, and otherwise lets it wait.
func (e *excess) has(s *Share, now time.Time) bool {
	e.waiting = slices.DeleteFunc(e.waiting, func(o *Share) bool { return o.users == 0 && o != s })
	if e.holder == nil && len(e.waiting) > 0 && now.Sub(e.since) >= ClaimFor {
		e.waiting, e.since = e.waiting[1:], now
	}
	switch {
	case e.holder == s, e.holder == nil && (len(e.waiting) == 0 || e.waiting[0] == s):
		return true
	case !slices.Contains(e.waiting, s):
		e.waiting = append(e.waiting, s)
	}
	return false
}

// begin records that a share exceeds its limits. over is called when that should end.
func (e *excess) begin(s *Share, now time.Time, over func()) {
	e.waiting = slices.DeleteFunc(e.waiting, func(o *Share) bool { return o == s })
	e.holder, e.since, e.timer = s, now, time.AfterFunc(ExcessFor, over)
}

func (e *excess) end(now time.Time) {
	e.timer.Stop()
	e.holder, e.since = nil, now
}

// endExcess aborts the largest answer of the tenant that exceeds its limits, if others wait.
func (b *Budget) endExcess() {
	b.mu.Lock()
	e := &b.excess
	var largest Answer
	if e.holder != nil {
		e.timer.Reset(ClaimFor)
		if len(e.waiting) > 0 {
			for a := range e.holder.answers {
				if largest == nil || a.Size() > largest.Size() {
					largest = a
				}
			}
		}
	}
	b.mu.Unlock()
	if largest != nil {
		largest.Abort()
	}
}
