// Package budget bounds what answers of providers take from a process: memory, while they are under way and until a reconcile
// takes them, and time. A hostile server can send as much as it likes, for as many stores as somebody creates, so the bounds
// are those of a tenant: a namespace, or a cluster store.
package budget

import (
	"context"
	"maps"
	"sync"
	"time"
)

// The bounds of memory, in bytes.
const (
	// Total bounds what all tenants take together, and Own what one of them does. Beside that one tenant at a time may take as much
	// as one thing more needs, so that nothing waits for ever.
	Total = 8 << 20
	Own   = 2 << 20
	// Assured is what each tenant may take although others have used up Total.
	Assured = 128 << 10
	// Uncounted is how much of each answer does not count while it arrives.
	Uncounted = 8 << 10
)

// The bounds of time. A call counts as some bytes: a tenant's stores are asked about 500 times a second, after a burst of
// 4,000 calls.
const (
	Rate  = 2 << 20 // bytes a second
	Burst = 16 << 20
	Call  = 4 << 10
	// Calls is how many are under way at once. Each has a connection, which takes some 50 KiB.
	Calls = 128
)

// A Budget is shared by the stores of a process. Its zero value is ready for use.
type Budget struct {
	mu     sync.Mutex
	used   int64
	shares map[string]*Share
	// beyond is the share that takes more than it may, now.
	beyond *Share
}

// Used returns how many bytes are counted.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Share returns what a tenant takes of it. Whoever asked for it leaves it in the end.
func (b *Budget) Share(tenant string) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.shares[tenant]
	if s == nil {
		now := time.Now()
		maps.DeleteFunc(b.shares, func(_ string, s *Share) bool { return s.idleLocked(now) })
		if b.shares == nil {
			b.shares = map[string]*Share{}
		}
		s = &Share{budget: b}
		b.shares[tenant] = s
	}
	s.users++
	return s
}

// A Share is what one tenant takes of a Budget. It is safe for concurrent use.
type Share struct {
	budget *Budget
	users  int

	used  int64
	calls int
	// spent is what was taken of the rate and is not made up for yet, at a time. How much a call takes is known only once it
	// has ended, so there may be debt.
	spent float64
	at    time.Time
}

// Leave ends the use of a Share. What still counts does so until it is released or made up for.
func (s *Share) Leave() {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.users--
}

func (s *Share) idleLocked(now time.Time) bool {
	return s.users == 0 && s.used == 0 && s.calls == 0 && s.debtLocked(now) == 0
}

// Room reports whether bytes would fit that are part of something that takes at most some.
func (s *Share) Room(n, most int64) bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.fitsLocked(n) || s.beyondLocked(n, most)
}

func (s *Share) fitsLocked(n int64) bool {
	return s.used+n <= Assured || s.used+n <= Own && s.budget.used+n <= Total
}

// beyondLocked reports whether the tenant may be the one that takes more than it may.
func (s *Share) beyondLocked(n, most int64) bool {
	return (s.budget.beyond == nil || s.budget.beyond == s) && s.used+n <= Own+most && s.budget.used+n <= Total+most
}

// Take counts bytes and reports true, unless they do not fit. They are part of something that takes at most some.
func (s *Share) Take(n, most int64) bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if !s.fitsLocked(n) && !s.beyondLocked(n, most) {
		return false
	}
	s.addLocked(n)
	return true
}

// Add counts bytes that are there, whether they fit or not. A negative number releases them.
func (s *Share) Add(n int64) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.addLocked(n)
}

func (s *Share) addLocked(n int64) {
	s.used += n
	s.budget.used += n
	switch fits := s.fitsLocked(0); {
	case !fits && s.budget.beyond == nil:
		s.budget.beyond = s
	case fits && s.budget.beyond == s:
		s.budget.beyond = nil
	}
}

// Used returns how many bytes are counted for the tenant.
func (s *Share) Used() int64 {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.used
}

// Start counts a call that is under way, and reports true, unless there are as many as there may be.
func (s *Share) Start() bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.calls >= Calls {
		return false
	}
	s.calls++
	return true
}

// End ends a call.
func (s *Share) End(now time.Time) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.calls--
	s.spendLocked(now, Call)
}

// Spend counts bytes that have arrived, also those of an answer that failed then.
func (s *Share) Spend(now time.Time, bytes int64) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.spendLocked(now, bytes)
}

func (s *Share) spendLocked(now time.Time, bytes int64) {
	s.spent, s.at = s.debtLocked(now)+float64(bytes), now
}

func (s *Share) debtLocked(now time.Time) float64 {
	return max(0, s.spent-now.Sub(s.at).Seconds()*Rate)
}

// Wait returns how long no call may be made. Urgent ones have as much again, so that they do not wait for periodic ones.
func (s *Share) Wait(now time.Time, urgent bool) time.Duration {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	most := float64(Burst)
	if urgent {
		most *= 2
	}
	return max(0, time.Duration((s.debtLocked(now)-most)/Rate*float64(time.Second)))
}

type key struct{}

// With returns a context whose requests count for a tenant.
func With(ctx context.Context, s *Share) context.Context { return context.WithValue(ctx, key{}, s) }

// Of returns the Share of a context; nil if its requests count for nobody.
func Of(ctx context.Context) *Share {
	s, _ := ctx.Value(key{}).(*Share)
	return s
}
