package dispatch

import (
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
		o.Busy = &Busy{}
	}
	if o.Quotas == nil {
		o.Quotas = &quota.Quotas{}
	}
	return o
}

// A Loader reads the secrets of one store with one set of credentials.
type Loader struct {
	// The mutex of Connection also guards the fields below.
	*Connection
	opts Options

	dialing bool
	flights flights
	limits  callLimits
	timer   *time.Timer
}

// NewLoader returns a Loader that reads with the Link that connect creates.
func NewLoader(connect Connect, o Options) *Loader {
	o = o.withDefaults()
	tenant := o.Quotas.Tenant(o.Tenant)
	l := &Loader{
		Connection: newConnection(connect, tenant), opts: o,
		flights: flights{entries: map[provider.Read]*entry{}, answers: map[provider.Read]*answer{}, tenant: tenant},
		limits:  callLimits{limiter: limiter{bucket: rate.NewLimiter(rate.Inf, 1)}, maxCalls: o.MaxCalls},
	}
	l.busy = func() bool { return l.limits.calls+l.limits.searching+len(l.flights.entries) > 0 }
	return l
}

// Urgency ranks a request.
type Urgency int

const (
	// Periodic requests come after all others.
	Periodic Urgency = iota
	// New requests come first.
	New
)
