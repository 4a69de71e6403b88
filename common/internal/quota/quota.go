// Package quota has the one account of what an operator does for its tenants: calls to servers, and bytes in memory. A tenant is a
// namespace, or a cluster store that uses the same credentials for all. It chooses the number of its objects, and its server answers
// what it likes. So each tenant has a share, and waits beyond it.
package quota

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Limits of calls.
const (
	// Rate limits the calls of a tenant per second, after Burst calls.
	//limit:reads Requests of a tenant, each page, retry and login included | unit=a second | metric=directsecrets_share_waiting{resource="rate"} | The request waits. After 30 s the call fails, and is retried.
	Rate = 480
	// Burst is the number of calls that do not wait.
	//limit:reads Requests of a tenant before that rate applies | metric=directsecrets_share_waiting{resource="rate"} | The rate applies. For new objects, refresh requests and pushes the burst is twice as large.
	Burst = 4096
	// Call is the number of bytes of an answer that count as one more call.
	//limit:reads Part of an answer that counts as one more request | unit=bytes | The rate applies earlier.
	Call = 4 << 10
	// maxUnpaid limits how long a tenant waits for a call that is not urgent.
	//limit:reads Requests that a tenant can be in debt, however much it has read | metric=directsecrets_share_waiting{resource="rate"} | More are not counted, so a wait stays short.
	maxUnpaid = 2*Burst + 120*Rate
	// Calls limits the concurrent calls of a tenant. Each holds a connection, which takes about 50 KiB.
	//limit:reads Concurrent requests of the stores, generators and event sources of a tenant | metric=directsecrets_share_waiting{resource="calls"} | The request waits.
	Calls = 128
	// Lists limits the lists of a tenant at the API server per second, after as many that do not wait.
	//limit:objects Lists of a tenant at the API server, each page included | unit=a second | metric=directsecrets_share_waiting{resource="lists"} | The list waits.
	Lists = 20
)

// Slots is the default of Quotas.Slots.
//
//limit:objects Objects in work at the same time | flag=concurrency | metric=directsecrets_share_waiting{resource="slots"} | The object waits. Of those that continue after they have waited, a tenant has at most a quarter.
const Slots = 64

// Quotas are those of all tenants of a process. The zero value is ready for use.
type Quotas struct {
	// Slots limits the walks that work at the same time. Of those that go on after they have waited, a tenant has at most a quarter.
	Slots int
	// PerTenant is true if the metrics name tenants.
	PerTenant bool

	mu sync.Mutex
	// Bound: one per tenant in use, or with bytes or calls that still count.
	tenants map[string]*Tenant
	bytes   pool
	// slots and work are those of all tenants. They are made when first used.
	slots, work *semaphore.Weighted
}

// Tenant returns a tenant. The caller must call EndUse on it in the end.
func (q *Quotas) Tenant(name string) *Tenant {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tenants[name]
	if t == nil {
		now := time.Now()
		maps.DeleteFunc(q.tenants, func(_ string, t *Tenant) bool { return t.idleLocked(now) })
		if q.tenants == nil {
			q.tenants = map[string]*Tenant{}
		}
		t = &Tenant{
			all: q, calls: semaphore.NewWeighted(Calls), work: semaphore.NewWeighted(1), lists: rate.NewLimiter(Lists, Lists),
			slots: semaphore.NewWeighted(int64(max(1, cmp.Or(q.Slots, Slots)/4))),
		}
		q.tenants[name] = t
	}
	t.users++
	return t
}

// Used returns how many bytes are counted.
func (q *Quotas) Used() (n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.tenants {
		n += t.used
	}
	return n
}

// A Tenant is what the quotas know of one. It is safe for concurrent use. Nothing counts for a nil Tenant.
type Tenant struct {
	all   *Quotas
	users int
	// calls, work and slots are those of the tenant. A caller that waits for others has them already.
	calls, work, slots *semaphore.Weighted
	// waiting counts the callers that wait, by what they wait for.
	waiting map[string]int

	// used are the bytes that count, and endedAt is when an answer was last ended for others.
	used    int64
	endedAt time.Time
	// spent are the calls that are not paid off at a time; Rate of them are each second. The size of an answer is known only after
	// the call, so spent can exceed Burst.
	spent float64
	at    time.Time
	// lists limits the lists at the API server.
	lists *rate.Limiter
}

// EndUse ends one use of a Tenant. Its bytes and its debt count until they are released or paid off.
func (t *Tenant) EndUse() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.users--
}

func (t *Tenant) idleLocked(now time.Time) bool {
	return t.users == 0 && t.used == 0 && t.unpaidLocked(now) == 0 && t.lists.TokensAt(now) >= Lists
}

// Call waits until the tenant may make one more call. The caller must call end when it has ended, with the bytes of the answer. The
// error is that of ctx.
func (t *Tenant) Call(ctx context.Context) (end func(bytes int64), err error) {
	if t == nil {
		return func(int64) {}, nil
	}
	release, err := t.acquire(ctx, "calls", t.calls)
	if err != nil {
		return nil, err
	}
	if wait := t.take(time.Now()); wait > 0 {
		defer t.Waits("rate")()
		for ; wait > 0; wait = t.take(time.Now()) {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				release()
				return nil, ctx.Err()
			}
		}
	}
	return func(bytes int64) {
		release()
		t.Spend(time.Now(), bytes)
	}, nil
}

// List waits until the tenant may make one more list at the API server. The error is that of ctx, or that ctx ends before.
func (t *Tenant) List(ctx context.Context) error {
	if t == nil || t.lists.Allow() {
		return nil
	}
	defer t.Waits("lists")()
	return t.lists.Wait(ctx)
}

// Work waits until the tenant may do work that takes a processor for long. Only one caller of each tenant waits with those of others. The caller
// must call end. The error is that of ctx.
func (t *Tenant) Work(ctx context.Context) (end func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	_, work := t.all.shared()
	return t.acquire(ctx, "work", t.work, work)
}

// OwnWork waits until no other caller of the tenant works. It is for what takes a processor for less long, so other tenants do not
// wait. The caller must call end. The error is that of ctx.
func (t *Tenant) OwnWork(ctx context.Context) (end func(), err error) {
	return t.acquire(ctx, "work", t.work)
}

// Slot waits for a slot for a tenant; an empty one has no part of its own. The caller must call end. The error is that of ctx.
func (q *Quotas) Slot(ctx context.Context, tenant string) (end func(), err error) {
	slots, _ := q.shared()
	if tenant == "" {
		return (*Tenant)(nil).acquire(ctx, "slots", slots)
	}
	t := q.Tenant(tenant)
	return t.endingUse(t.acquire(ctx, "slots", t.slots, slots))
}

// Work is OwnWork of a tenant by name.
func (q *Quotas) Work(ctx context.Context, tenant string) (end func(), err error) {
	t := q.Tenant(tenant)
	return t.endingUse(t.OwnWork(ctx))
}

// endingUse returns an end that also ends the use of the tenant. It ends it at once if there is an error.
func (t *Tenant) endingUse(end func(), err error) (func(), error) {
	if err != nil {
		t.EndUse()
		return nil, err
	}
	return func() {
		end()
		t.EndUse()
	}, nil
}

// shared returns what all tenants share.
func (q *Quotas) shared() (slots, work *semaphore.Weighted) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.slots == nil {
		q.slots, q.work = semaphore.NewWeighted(int64(cmp.Or(q.Slots, Slots))), semaphore.NewWeighted(1)
	}
	return q.slots, q.work
}

// acquire takes one of each, in order, and waits for it. The first is the tenant's own.
func (t *Tenant) acquire(ctx context.Context, what string, all ...*semaphore.Weighted) (release func(), err error) {
	for i, s := range all {
		if s.TryAcquire(1) {
			continue
		}
		if i == 0 {
			defer t.Waits(what)()
		}
		if err := s.Acquire(ctx, 1); err != nil {
			for _, taken := range all[:i] {
				taken.Release(1)
			}
			return nil, err
		}
	}
	return func() {
		for _, s := range all {
			s.Release(1)
		}
	}, nil
}

// take counts an urgent call, or returns how long it has to wait.
func (t *Tenant) take(now time.Time) time.Duration {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	wait := t.waitLocked(now, true)
	if wait == 0 {
		t.spendLocked(now, 1)
	}
	return wait
}

// Spend counts bytes that have arrived, including those of answers that failed later.
func (t *Tenant) Spend(now time.Time, bytes int64) {
	if t == nil {
		return
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.spendLocked(now, float64(bytes)/Call)
}

func (t *Tenant) spendLocked(now time.Time, calls float64) {
	t.spent, t.at = min(t.unpaidLocked(now)+calls, maxUnpaid), now
}

func (t *Tenant) unpaidLocked(now time.Time) float64 {
	return max(0, t.spent-now.Sub(t.at).Seconds()*Rate)
}

// Wait returns how long the tenant must not make a call. Urgent calls have twice the burst, so that they do not wait for periodic ones.
func (t *Tenant) Wait(now time.Time, urgent bool) time.Duration {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.waitLocked(now, urgent)
}

func (t *Tenant) waitLocked(now time.Time, urgent bool) time.Duration {
	most := float64(Burst)
	if urgent {
		most *= 2
	}
	return max(0, time.Duration((t.unpaidLocked(now)-most)/Rate*float64(time.Second)))
}

type key struct{}

// With returns a context whose requests count for a tenant.
func With(ctx context.Context, t *Tenant) context.Context { return context.WithValue(ctx, key{}, t) }

// Of returns the Tenant of a context; nil if its requests count for none.
func Of(ctx context.Context) *Tenant {
	t, _ := ctx.Value(key{}).(*Tenant)
	return t
}
