package fetch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/direct-secrets/direct-secrets/common/store"
)

// Bounds of the adaptive window: how long a request may wait for others to join its batch.
const (
	// A store that nobody has read of late answers almost at once.
	idleWindow = 2 * time.Millisecond
	// While requests keep coming together, batches are worth waiting for.
	busyWindow = 50 * time.Millisecond
	// A batch of more than one request makes the stores of the process busy for this long.
	busyFor = 500 * time.Millisecond
)

// Options bound what a Loader does. The zero value has sensible defaults.
type Options struct {
	// CallTimeout is the deadline of one call to the provider, its retries included. Default 30s.
	CallTimeout time.Duration
	// MaxCalls is the number of calls under way at once. Default 10 for a client that reads
	// batches, 32 for any other.
	MaxCalls int
	// Busy is shared by the loaders of a process. Default: none is shared.
	Busy *Busy
	// MaxHeld is the number of answered requests that wait for their reconcile; above it no
	// further call is made, which bounds the values in memory. Default 512.
	MaxHeld int
}

// Busy remembers when requests last came together, at any store: objects that are created by the
// hundred are spread over many stores, and each store sees but a few of them.
type Busy struct{ last atomic.Int64 }

func (b *Busy) mark(now time.Time) { b.last.Store(now.UnixNano()) }

func (b *Busy) is(now time.Time) bool {
	return now.Sub(time.Unix(0, b.last.Load())) < busyFor
}

// A Connect makes the client of a Loader. It is called when the first secret is asked for.
type Connect func(ctx context.Context) (store.Client, error)

// A Loader reads the secrets of one store with one identity.
type Loader struct {
	kind    string
	connect Connect
	opts    Options

	mu      sync.Mutex
	client  store.Client
	dialing bool
	entries map[store.Ref]*entry
	urgent  []*entry
	normal  []*entry
	calls   int
	held    int
	timer   *time.Timer
	limit   limiter
	retired bool
}

// entry is one read that somebody waits for.
type entry struct {
	ref     store.Ref
	since   time.Time
	urgent  bool
	sent    bool
	tickets []*Ticket
}

// NewLoader returns a Loader that reads through the client that connect makes. kind is the store's
// Kind, for metrics.
func NewLoader(kind string, connect Connect, o Options) *Loader {
	if o.CallTimeout == 0 {
		o.CallTimeout = 30 * time.Second
	}
	if o.Busy == nil {
		o.Busy = &Busy{}
	}
	if o.MaxHeld == 0 {
		o.MaxHeld = 512
	}
	return &Loader{
		kind: kind, connect: connect, opts: o,
		entries: map[store.Ref]*entry{},
		limit:   limiter{bucket: rate.NewLimiter(rate.Inf, 1)},
	}
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
// its result; the caller then takes them from the Ticket. It never blocks.
func (l *Loader) Request(refs []store.Ref, u Urgency, done func()) *Ticket {
	t := &Ticket{loader: l, results: make(map[store.Ref]store.Result, len(refs)), done: done}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ref := range refs {
		if _, twice := t.results[ref]; twice {
			continue
		}
		t.results[ref] = store.Result{}
		t.missing++
		l.joinLocked(ref, u, t)
	}
	if t.missing == 0 {
		l.held++
		go done()
	}
	l.pumpLocked()
	return t
}

func (l *Loader) joinLocked(ref store.Ref, u Urgency, t *Ticket) {
	e := l.entries[ref]
	if e == nil || (e.sent && u == Fresh) {
		// A sent entry that is replaced here still serves those who wait for it.
		e = &entry{ref: ref, since: time.Now(), urgent: u > Periodic}
		l.entries[ref] = e
		l.queueLocked(e)
	}
	if u > Periodic && !e.urgent && !e.sent {
		e.urgent = true
		l.urgent = append(l.urgent, e) // Its place in normal is passed over.
	}
	e.tickets = append(e.tickets, t)
}

func (l *Loader) queueLocked(e *entry) {
	if e.urgent {
		l.urgent = append(l.urgent, e)
		return
	}
	l.normal = append(l.normal, e)
}

// Client returns the connected client, connecting first if need be.
func (l *Loader) Client(ctx context.Context) (store.Client, error) {
	l.mu.Lock()
	c := l.client
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil {
		// Somebody else was faster.
		go func() { _ = store.Close(c) }()
		return l.client, nil
	}
	l.client = c
	return c, nil
}

// Retire lets requests under way finish, and closes the client after the last. New requests still
// work; whoever holds a Loader that was retired should get a new one.
func (l *Loader) Retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
	l.closeIfIdleLocked()
}

func (l *Loader) closeIfIdleLocked() {
	if !l.retired || l.calls > 0 || len(l.entries) > 0 || l.client == nil {
		return
	}
	c := l.client
	l.client = nil
	go func() { _ = store.Close(c) }()
}
