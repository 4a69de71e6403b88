// Package budget limits the memory and the time that providers' answers take from a process. Memory counts while an
// answer arrives and until a reconcile takes it. A hostile server can send any amount, for any number of stores that
// a tenant creates. So the limits apply per tenant: a namespace, or a cluster store.
package budget

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Limits of memory, in bytes.
const (
	// Total limits all tenants together, Own limits each tenant. In addition, one tenant at a time can exceed them by
	// the size of one value, so that no value waits forever. One after another can do so.
	Total = 8 << 20
	Own   = 2 << 20
	// Assured is what each tenant can always take, even when other tenants have used up Total.
	Assured = 128 << 10
	// Uncounted is the part of each arriving answer, in bytes, that does not count.
	Uncounted = 8 << 10
)

// Limits of time. Each call counts as Call bytes, so the stores of a tenant can make 500 calls a second after a burst
// of 4,000 calls.
const (
	Rate  = 2 << 20 // bytes a second
	Burst = 16 << 20
	Call  = 4 << 10
	// maxUnpaid limits how long a tenant waits for a call that is not urgent.
	maxUnpaid = 2*Burst + 120*Rate
	// Calls limits the concurrent calls of a tenant. Each holds a connection, which takes about 50 KiB.
	Calls = 128
)

// ExcessFor is how long a tenant can exceed its limits while others wait for that. ClaimFor is how long the next one has to
// begin.
const (
	ExcessFor = 4 * time.Second
	ClaimFor  = time.Second
)

// A Budget is shared by all stores of a process. Its zero value is ready for use.
type Budget struct {
	mu     sync.Mutex
	used   int64
	shares map[string]*Share
	excess excess
}

// Used returns how many bytes are counted.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Share returns the share of a tenant. The caller must call EndUse on it in the end.
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
		s = &Share{budget: b, lock: make(chan struct{}, 1)}
		b.shares[tenant] = s
	}
	s.users++
	return s
}

// A Share is the part of a Budget that one tenant uses. It is safe for concurrent use.
type Share struct {
	budget *Budget
	users  int
	// lock is full while a caller has it.
	lock chan struct{}

	used  int64
	calls int
	// answers are those that arrive now.
	answers map[Answer]bool
	// spent is the debt, in bytes, at a time; it decreases by Rate bytes a second. The size of an answer is known
	// only after the call, so spent can exceed Burst.
	spent float64
	at    time.Time
}

// EndUse ends one use of a Share. Its bytes and its debt count until they are released or paid off.
func (s *Share) EndUse() {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.users--
}

func (s *Share) idleLocked(now time.Time) bool {
	return s.users == 0 && s.used == 0 && s.calls == 0 && s.unpaidLocked(now) == 0
}

// Room reports whether n more bytes fit. They are part of a value of at most most bytes.
func (s *Share) Room(n, most int64) bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.fitsLocked(n) || s.beyondLocked(n, most)
}

func (s *Share) fitsLocked(n int64) bool {
	return s.used+n <= Assured || s.used+n <= Own && s.budget.used+n <= Total
}

// beyondLocked reports whether n more bytes fit if this tenant is the only one that exceeds its limits. It must not for most 0.
func (s *Share) beyondLocked(n, most int64) bool {
	return most > 0 && s.used+n <= Own+most && s.budget.used+n <= Total+most && s.budget.excess.has(s, time.Now())
}

// Lock waits until no other caller has the lock of the tenant. It returns false if ctx has ended before.
func (s *Share) Lock(ctx context.Context) bool {
	select {
	case s.lock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Unlock ends what Lock began.
func (s *Share) Unlock() { <-s.lock }

// Take counts n bytes and reports true if they fit; otherwise it counts nothing. They are part of a value of at most
// most bytes.
func (s *Share) Take(n, most int64) bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if !s.fitsLocked(n) && !s.beyondLocked(n, most) {
		return false
	}
	s.addLocked(n)
	return true
}

// Add counts n bytes that are already in memory, whether they fit or not. A negative n releases bytes.
func (s *Share) Add(n int64) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.addLocked(n)
}

func (s *Share) addLocked(n int64) {
	s.used += n
	s.budget.used += n
	switch t, fits := &s.budget.excess, s.fitsLocked(0); {
	case !fits && t.holder == nil:
		t.begin(s, time.Now(), s.budget.endExcess)
	case fits && t.holder == s:
		t.end(time.Now())
	}
}

// Used returns how many bytes are counted for the tenant.
func (s *Share) Used() int64 {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	return s.used
}

// Start counts a call and reports true, unless the tenant has Calls of them under way.
func (s *Share) Start() bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.calls >= Calls {
		return false
	}
	s.calls++
	return true
}

// End ends a call that Start counted.
func (s *Share) End(now time.Time) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.calls--
	s.spendLocked(now, Call)
}

// Spend counts bytes that have arrived, including those of answers that failed later.
func (s *Share) Spend(now time.Time, bytes int64) {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.spendLocked(now, bytes)
}

func (s *Share) spendLocked(now time.Time, bytes int64) {
	s.spent, s.at = min(s.unpaidLocked(now)+float64(bytes), maxUnpaid), now
}

func (s *Share) unpaidLocked(now time.Time) float64 {
	return max(0, s.spent-now.Sub(s.at).Seconds()*Rate)
}

// Wait returns how long the tenant must not make a call. Urgent calls have twice the burst, so that they do not wait
// for periodic ones.
func (s *Share) Wait(now time.Time, urgent bool) time.Duration {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	most := float64(Burst)
	if urgent {
		most *= 2
	}
	return max(0, time.Duration((s.unpaidLocked(now)-most)/Rate*float64(time.Second)))
}

type key struct{}

// With returns a context whose requests count for the tenant of s.
func With(ctx context.Context, s *Share) context.Context { return context.WithValue(ctx, key{}, s) }

// Of returns the Share of a context; nil if its requests count for no tenant.
func Of(ctx context.Context) *Share {
	s, _ := ctx.Value(key{}).(*Share)
	return s
}
