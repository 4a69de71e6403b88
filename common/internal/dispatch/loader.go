package dispatch

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Options are the limits of a Loader. The zero value has sensible defaults.
type Options struct {
	// CallTimeout is the timeout of one call to the provider, including retries. Default 30s.
	CallTimeout time.Duration
	// SearchTimeout is the timeout of one search, which can need many calls. Default 2m.
	SearchTimeout time.Duration
	// MaxCalls is the maximum number of concurrent calls. Default 10 for a client that reads batches, otherwise 32.
	MaxCalls int
	// Busy and Quotas are shared by the loaders of a process. Default: each loader has its own.
	Busy   *Busy
	Quotas *quota.Quotas
	// Tenant is the name of the tenant for which the calls count: a namespace, or a cluster store.
	Tenant string
}

func (o Options) withDefaults() Options {
	if o.CallTimeout == 0 {
		o.CallTimeout = 30 * time.Second
	}
	if o.SearchTimeout == 0 {
		o.SearchTimeout = 2 * time.Minute
	}
	if o.Busy == nil {
		o.Busy = NewBusy(func() int { return 0 }, 0)
	}
	if o.Quotas == nil {
		o.Quotas = &quota.Quotas{}
	}
	return o
}

// A Connect connects to a provider. It is called when the connection is first needed.
// All answers to the Link count for the tenant.
type Connect func(ctx context.Context, t *quota.Tenant) (*provider.Link, error)

// A Loader is one Link with many concurrent users, and reads the secrets of one store with one set of credentials.
// Generators and event sources use only its Link.
type Loader struct {
	connect Connect
	opts    Options
	// tenant counts the bytes of all held answers. endUse ends its use.
	tenant *quota.Tenant
	endUse func()

	mu sync.Mutex
	// link is nil until it is connected, and after it was closed.
	link *provider.Link
	// lent counts the callers of Link whose context has not ended.
	lent             int
	dialing, retired bool

	// entries are the latest read of each secret and the latest of each search, as long as they are needed.
	// Bound: one per read or search of a request that waits or holds its answer.
	entries map[provider.Read]*entry
	// waiting are the entries that were not sent yet, oldest first.
	waiting []*entry
	// calls counts the calls under way: false for those that read secrets, true for searches.
	// Bound: two.
	calls   map[bool]int
	limiter limiter
	// timer makes the next attempt to send the waiting entries.
	timer *time.Timer
}

// NewLoader returns a Loader that reads with the Link that connect creates. It uses its tenant until it is retired.
func NewLoader(connect Connect, o Options) *Loader {
	o = o.withDefaults()
	tenant := o.Quotas.Tenant(o.Tenant)
	l := &Loader{
		connect: connect, opts: o, tenant: tenant, endUse: sync.OnceFunc(tenant.EndUse),
		entries: map[provider.Read]*entry{}, calls: map[bool]int{},
		limiter: limiter{bucket: rate.NewLimiter(rate.Inf, 1)},
	}
	l.timer = time.AfterFunc(0, l.pump)
	return l
}

// Link returns the Link, and connects first if necessary. It returns when ctx ends, even if the provider's code does not.
// The Link is not closed before ctx ends.
func (l *Loader) Link(ctx context.Context) (*provider.Link, error) {
	if c := l.lend(ctx, nil); c != nil {
		return c, nil
	}
	return Within(ctx, func() (*provider.Link, error) {
		c, err := l.connect(ctx, l.tenant)
		if err != nil {
			return nil, err
		}
		return l.lend(ctx, c), nil
	})
}

// lend returns the Link for a use until ctx ends. If there is none, it becomes c.
func (l *Loader) lend(ctx context.Context, c *provider.Link) *provider.Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.link == nil && c == nil:
		return nil
	case l.link == nil:
		l.link = c
	case c != nil:
		go func() { _ = c.Close() }() // A concurrent call has connected first.
	}
	l.lent++
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lent--
		l.closeIfIdleLocked()
	})
	return l.link
}

// Retire closes the Link after the uses under way have ended. New uses still work, but a holder of a retired
// Loader should get a new one. Calls under way count for the tenant until they have ended.
func (l *Loader) Retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
	l.closeIfIdleLocked()
}

func (l *Loader) closeIfIdleLocked() {
	if !l.retired || l.lent+l.calls[false]+l.calls[true]+len(l.waiting) > 0 {
		return
	}
	l.endUse()
	if c := l.link; c != nil {
		l.link = nil
		go func() { _ = c.Close() }()
	}
}

// Within runs f and returns its result, or the error of ctx if that ends before. A later result of f is dropped.
func Within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	var value, none T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		value, err = f()
	}()
	select {
	case <-done:
		return value, err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
