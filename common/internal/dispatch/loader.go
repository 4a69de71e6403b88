package dispatch

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/direct-secrets/direct-secrets/common/internal/budget"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Options bound what a Loader does. The zero value has sensible defaults.
type Options struct {
	// CallTimeout is the deadline of one call to the provider, its retries included. Default 30s.
	CallTimeout time.Duration
	// SearchTimeout is the deadline of one search, which may be many calls. Default 2m.
	SearchTimeout time.Duration
	// MaxCalls is the number of calls under way at once. Default 10 for a client that reads
	// batches, 32 for any other.
	MaxCalls int
	// Busy and Budget are shared by the loaders of a process. Default: none is shared.
	Busy   *Busy
	Budget *budget.Budget
	// Tenant is for whom the calls count.
	Tenant string
	// MaxHeld is the number of answered requests that wait for their reconcile; above it no
	// further call is made, which bounds the values in memory. Default 512.
	MaxHeld int
}

func (o Options) withDefaults() Options {
	if o.CallTimeout == 0 {
		o.CallTimeout = 30 * time.Second
	}
	if o.SearchTimeout == 0 {
		o.SearchTimeout = 2 * time.Minute
	}
	if o.Busy == nil {
		o.Busy = &Busy{}
	}
	if o.Budget == nil {
		o.Budget = &budget.Budget{}
	}
	if o.MaxHeld == 0 {
		o.MaxHeld = 512
	}
	return o
}

// A Loader reads the secrets of one store with one identity.
type Loader struct {
	// Connection is locked for the fields below, too.
	*Connection[provider.Client]
	kind string
	opts Options

	dialing bool
	flights flights
	pace    pace
	timer   *time.Timer
}

// NewLoader returns a Loader that reads through the client that connect makes. kind is the store's
// Kind, for metrics.
func NewLoader(kind string, connect Connect[provider.Client], o Options) *Loader {
	o = o.withDefaults()
	share := o.Budget.Share(o.Tenant)
	l := &Loader{
		Connection: NewConnection(connect),
		kind:       kind, opts: o,
		flights: flights{entries: map[provider.Read]*entry{}, answers: map[provider.Read]*answer{}, share: share},
		pace:    pace{limiter: limiter{bucket: rate.NewLimiter(rate.Inf, 1)}, maxCalls: o.MaxCalls, maxHeld: o.MaxHeld},
	}
	l.busy = func() bool { return l.pace.calls+l.pace.searching+len(l.flights.entries) > 0 }
	return l
}

// Retire is Connection.Retire; what is under way counts until it has ended.
func (l *Loader) Retire() {
	l.Connection.Retire()
	l.flights.share.Leave()
}

// Urgency ranks a request, and says whether it may join a read that is already under way.
type Urgency int

const (
	// Periodic requests give way to all others.
	Periodic Urgency = iota
	// New requests go first.
	New
	// Fresh requests go first and are read from now on: somebody asked for the value as it is now,
	// which an answer under way may precede.
	Fresh
)

// Request asks for secrets. done is called once, from another goroutine, when every one of them has
// its answer; the caller then takes them from the Ticket. It is not called for a Ticket that was
// dropped before. Request never blocks.
func (l *Loader) Request(reads []provider.Read, u Urgency, done func()) *Ticket {
	t := &Ticket{loader: l, results: make(map[provider.Read]provider.Answer, len(reads)), done: done}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, read := range reads {
		if _, twice := t.results[read]; twice {
			continue
		}
		t.results[read] = provider.Answer{}
		t.missing++
		l.flights.join(read, u, t, time.Now())
	}
	if t.missing == 0 {
		l.pace.held++
		go done()
	}
	l.pumpLocked()
	return t
}
