package quota

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Limits of memory, in bytes.
const (
	// Total limits all tenants together. The last third of it is for tenants that use less than an eighth.
	//limit:memory Memory for what is read for all tenants | unit=bytes | metric=directsecrets_share_waiting{resource="memory"} | The answer waits.
	Total = 16 << 20
	// Own limits each tenant. One tenant at a time can exceed it, by the maximum size of what it asks for, so that this is always possible.
	//limit:memory Memory for what is read for one tenant | unit=bytes | metric=directsecrets_share_waiting{resource="memory"} | The answer waits.
	Own = Total / 4
	// Uncounted is the part of each arriving answer that does not count.
	//limit:memory First part of an arriving answer that does not count | unit=bytes | The rest counts twice, because it is also decoded.
	Uncounted = 64 << 10
)

// maxWait is how long another tenant waits before an answer that arrives slowly is ended for it.
//
//limit:memory Time that another tenant waits before slow answers are ended | They are `Unavailable`, and are retried after those that wait.
const maxWait = time.Second

// pool is the state of the bytes of all tenants.
type pool struct {
	// used is the sum over all tenants, of at most Own each.
	used int64
	// beyond is the tenant that exceeds its limits; nil if there is none.
	beyond *Tenant
	// arriving hold bytes for answers that arrive, and waiting wait for more, in order.
	arriving map[*Held]bool
	waiting  []*waiter
	timer    *time.Timer
}

type waiter struct {
	held    *Held
	n, most int64
	since   time.Time
	granted chan struct{}
}

// Held are bytes that count for a tenant. Its methods must not be called concurrently, but for Release. The zero value holds none, for no
// tenant.
type Held struct {
	tenant *Tenant
	n      int64
	// since is when the bytes began to arrive, and abort ends that; nil for those that are read otherwise.
	since time.Time
	abort func()
	// released is true once nothing is held any longer.
	released bool
}

// Holder returns a Held without bytes. abort is called while others wait for bytes that arrive slowly, perhaps while they are read. It may be
// nil.
func (t *Tenant) Holder(abort func()) *Held { return &Held{tenant: t, since: time.Now(), abort: abort} }

// Grow waits until at least n bytes are held in all, of most that may be needed. It doubles what is held, so that it seldom waits. The error
// is that of ctx.
func (h *Held) Grow(ctx context.Context, n, most int64) error {
	if h.tenant == nil || n <= h.n {
		return nil
	}
	w := h.tenant.all.join(h, min(max(n, 2*h.n), max(n, most))-h.n, most)
	if w == nil {
		return nil
	}
	defer h.tenant.Waits("memory")()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		return h.tenant.all.giveUp(w, ctx.Err())
	}
}

// TryGrow is Grow that does not wait. It reports whether the bytes are held.
func (h *Held) TryGrow(n int64) bool {
	if h.tenant == nil || n <= h.n {
		return true
	}
	q := h.tenant.all
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.fitsLocked(h.tenant, n-h.n, n, false) {
		return false
	}
	q.holdLocked(h, n-h.n)
	return true
}

// TryHold counts n bytes for a tenant until release, and returns the tenant; nil if they do not fit.
func (q *Quotas) TryHold(name string, n int64) (t *Tenant, release func()) {
	t = q.Tenant(name)
	h := t.Holder(nil)
	release = sync.OnceFunc(func() {
		h.Release()
		t.EndUse()
	})
	if !h.TryGrow(n) {
		release()
		return nil, release
	}
	return t, release
}

// Keep gives back what exceeds n bytes.
func (h *Held) Keep(n int64) {
	if h.tenant == nil {
		return
	}
	q := h.tenant.all
	q.mu.Lock()
	defer q.mu.Unlock()
	q.holdLocked(h, min(0, n-h.n))
}

// Release gives back all bytes, also those that a Grow under way takes later. A second call does nothing.
func (h *Held) Release() {
	if h.tenant == nil {
		return
	}
	q := h.tenant.all
	q.mu.Lock()
	defer q.mu.Unlock()
	h.released = true
	q.holdLocked(h, -h.n)
}

// Add counts n bytes that are already in memory, whether they fit or not. A negative n releases bytes.
func (t *Tenant) Add(n int64) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.all.addLocked(t, n)
}

// Room reports whether the tenant may ask for more bytes, which are part of something with at most most bytes.
func (t *Tenant) Room(most int64) bool {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.all.fitsLocked(t, 1, most, false)
}

// Used returns how many bytes are counted for the tenant.
func (t *Tenant) Used() int64 {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	return t.used
}

// fitsLocked reports whether n more bytes of a tenant fit, which are part of something with at most most bytes. first is true if no other
// tenant has waited for longer.
func (q *Quotas) fitsLocked(t *Tenant, n, most int64, first bool) bool {
	if q.withinLocked(t, n) {
		return true
	}
	if q.bytes.beyond != nil && q.bytes.beyond != t || t.used+n > Own+most {
		return false
	}
	return first || q.firstLocked(t, len(q.bytes.waiting))
}

// withinLocked reports whether a tenant with n more bytes is within its limits.
func (q *Quotas) withinLocked(t *Tenant, n int64) bool {
	own := t.used + n
	all := q.bytes.used - min(t.used, Own) + own
	return own <= Own && (all <= Total*2/3 || own <= Total/8 && all <= Total)
}

func (q *Quotas) holdLocked(h *Held, n int64) {
	if h.released {
		n = -h.n
	}
	h.n += n
	if h.abort != nil {
		if q.bytes.arriving == nil {
			q.bytes.arriving = map[*Held]bool{}
		}
		if q.bytes.arriving[h] = true; h.n == 0 {
			delete(q.bytes.arriving, h)
		}
	}
	q.addLocked(h.tenant, n)
}

// addLocked counts bytes, and grants those for which there is room now.
func (q *Quotas) addLocked(t *Tenant, n int64) {
	p := &q.bytes
	p.used += min(t.used+n, Own) - min(t.used, Own)
	t.used += n
	switch within := q.withinLocked(t, 0); {
	case !within && p.beyond == nil:
		p.beyond = t
	case within && p.beyond == t:
		p.beyond = nil
	}
	if n < 0 {
		q.grantLocked()
	}
}

func (q *Quotas) grantLocked() {
	for i := 0; i < len(q.bytes.waiting); i++ {
		w := q.bytes.waiting[i]
		if !q.fitsLocked(w.held.tenant, w.n, w.most, q.firstLocked(w.held.tenant, i)) {
			continue
		}
		q.bytes.waiting = slices.Delete(q.bytes.waiting, i, i+1)
		i--
		q.holdLocked(w.held, w.n)
		close(w.granted)
	}
}

// firstLocked reports whether no other tenant waits before a position.
func (q *Quotas) firstLocked(t *Tenant, position int) bool {
	return !slices.ContainsFunc(q.bytes.waiting[:position], func(w *waiter) bool { return w.held.tenant != t })
}

// join takes n more bytes for h, or returns the waiter for them. Tenants whose answers were ended for others come last.
func (q *Quotas) join(h *Held, n, most int64) *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := len(q.bytes.waiting)
	for i > 0 && q.bytes.waiting[i-1].held.tenant.endedAt.After(h.tenant.endedAt) {
		i--
	}
	if q.fitsLocked(h.tenant, n, most, q.firstLocked(h.tenant, i)) {
		q.holdLocked(h, n)
		return nil
	}
	w := &waiter{h, n, most, time.Now(), make(chan struct{})}
	q.bytes.waiting = slices.Insert(q.bytes.waiting, i, w)
	if len(q.bytes.waiting) == 1 {
		q.bytes.timer = time.AfterFunc(maxWait, q.endSlow)
	}
	return w
}

// giveUp ends a wait with an error, unless it has ended meanwhile.
func (q *Quotas) giveUp(w *waiter, err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.bytes.waiting, w)
	if i < 0 {
		return nil
	}
	q.bytes.waiting = slices.Delete(q.bytes.waiting, i, i+1)
	q.grantLocked()
	return err
}

// endSlow ends answers that arrive slowly, the largest first, of the tenant that uses the most of them, until it is within its share, if
// a tenant that uses less has waited for long.
func (q *Quotas) endSlow() {
	q.mu.Lock()
	p, now := &q.bytes, time.Now()
	if len(p.waiting) > 0 {
		p.timer.Reset(maxWait / 4)
	}
	var slow []*Held
	for h := range p.arriving {
		waited := slices.ContainsFunc(p.waiting, func(w *waiter) bool { return w.held.tenant.used < h.tenant.used && now.Sub(w.since) >= maxWait })
		if waited && now.Sub(h.since) >= maxWait/4 {
			slow = append(slow, h)
		}
	}
	slices.SortFunc(slow, func(a, b *Held) int {
		return cmp.Or(cmp.Compare(b.tenant.used, a.tenant.used), cmp.Compare(b.n, a.n))
	})
	var ended []*Held
	for left := int64(0); len(slow) > 0 && (len(ended) == 0 || slow[0].tenant == ended[0].tenant && left > Own); slow = slow[1:] {
		h := slow[0]
		if len(ended) == 0 {
			left = h.tenant.used
		}
		left -= h.n
		delete(p.arriving, h) // Its bytes count until they are released.
		h.tenant.endedAt = now
		ended = append(ended, h)
	}
	slices.SortStableFunc(p.waiting, func(a, b *waiter) int { return a.held.tenant.endedAt.Compare(b.held.tenant.endedAt) })
	q.mu.Unlock()
	for _, h := range ended {
		h.abort()
	}
}
