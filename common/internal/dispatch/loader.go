package dispatch

import (
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// Bounds of the adaptive window: how long a request may wait for others to join its batch.
const (
	// A store that nobody has read of late answers almost at once.
	idleWindow = 2 * time.Millisecond
	// While requests keep coming together, batches are worth waiting for.
	busyWindow = 50 * time.Millisecond
	// While many objects are written, the API server is what they wait for, and an answer more
	// would only make the line longer.
	loadedWindow = 250 * time.Millisecond
	// A batch of more than one request makes the stores of the process busy for this long.
	busyFor = 500 * time.Millisecond
)

// sharedFor bounds the age of an answer that is shared.
const sharedFor = time.Second

// Options bound what a Loader does. The zero value has sensible defaults.
type Options struct {
	// CallTimeout is the deadline of one call to the provider, its retries included. Default 30s.
	CallTimeout time.Duration
	// SearchTimeout is the deadline of one search, which may be many calls. Default 2m.
	SearchTimeout time.Duration
	// MaxCalls is the number of calls under way at once. Default 10 for a client that reads
	// batches, 32 for any other.
	MaxCalls int
	// Busy is shared by the loaders of a process. Default: none is shared.
	Busy *Busy
	// MaxHeld is the number of answered requests that wait for their reconcile; above it no
	// further call is made, which bounds the values in memory. Default 512.
	MaxHeld int
}

// Busy says whether requests are likely to come together, at any store: objects that are due by the
// hundred are spread over many stores, and each store sees but a few of them.
type Busy struct {
	last    atomic.Int64
	queued  atomic.Pointer[func() int]
	workers atomic.Int64
}

// Watch tells how many objects are due or being worked on, and how many workers there are. While
// there are any, more requests are on their way.
func (b *Busy) Watch(queued func() int, workers int) {
	b.workers.Store(int64(workers))
	b.queued.Store(&queued)
}

// loaded reports whether a quarter of the workers, or more objects, are busy. Nothing blocks a worker
// but the API server.
func (b *Busy) loaded() bool {
	queued := b.queued.Load()
	return queued != nil && int64((*queued)()) >= max(2, b.workers.Load()/4)
}

func (b *Busy) mark(now time.Time) { b.last.Store(now.UnixNano()) }

func (b *Busy) is(now time.Time) bool {
	if now.Sub(time.Unix(0, b.last.Load())) < busyFor {
		return true
	}
	queued := b.queued.Load()
	return queued != nil && (*queued)() > 0
}

// A Loader reads the secrets of one store with one identity.
type Loader struct {
	// Connection is locked for the fields below, too.
	*Connection[provider.Client]
	kind string
	opts Options

	dialing bool
	entries map[provider.Read]*entry
	// answers are those that a reconcile has yet to take.
	answers map[provider.Read]*answer
	// urgent and normal hold the reads of secrets that were not sent yet, oldest first, and searches
	// the searches.
	urgent, normal, searches []*entry
	calls, searching         int
	held                     int
	timer                    *time.Timer
	limit                    limiter
}

// entry is one read that somebody waits for.
type entry struct {
	read    provider.Read
	since   time.Time
	urgent  bool
	sent    bool
	tickets []*Ticket
}

// answer is a result that some tickets hold. Objects that are due together do not all ask before
// the provider has answered the first; as long as one of them holds the answer, the others share it.
type answer struct {
	read    provider.Read
	answer  provider.Answer
	at      time.Time
	holders int
}

// NewLoader returns a Loader that reads through the client that connect makes. kind is the store's
// Kind, for metrics.
func NewLoader(kind string, connect Connect[provider.Client], o Options) *Loader {
	if o.CallTimeout == 0 {
		o.CallTimeout = 30 * time.Second
	}
	if o.SearchTimeout == 0 {
		o.SearchTimeout = 2 * time.Minute
	}
	if o.Busy == nil {
		o.Busy = &Busy{}
	}
	if o.MaxHeld == 0 {
		o.MaxHeld = 512
	}
	l := &Loader{
		Connection: NewConnection(connect),
		kind:       kind, opts: o,
		entries: map[provider.Read]*entry{},
		answers: map[provider.Read]*answer{},
		limit:   limiter{bucket: rate.NewLimiter(rate.Inf, 1)},
	}
	l.busy = func() bool { return l.calls+l.searching+len(l.entries) > 0 }
	return l
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
		l.joinLocked(read, u, t)
	}
	if t.missing == 0 {
		l.held++
		go done()
	}
	l.pumpLocked()
	return t
}

func (l *Loader) joinLocked(read provider.Read, u Urgency, t *Ticket) {
	if a := l.answers[read]; a != nil && u != Fresh && time.Since(a.at) < sharedFor {
		t.results[read] = a.answer
		t.missing--
		t.holdLocked(a)
		return
	}
	e := l.entries[read]
	if e == nil || (e.sent && u == Fresh) {
		// A sent entry that is replaced here still serves those who wait for it.
		e = &entry{read: read, since: time.Now(), urgent: u > Periodic}
		l.entries[read] = e
		l.queueLocked(e)
	}
	if u > Periodic && !e.urgent && !e.sent {
		q := l.queueOf(e)
		*q = slices.DeleteFunc(*q, func(x *entry) bool { return x == e })
		e.urgent = true
		l.queueLocked(e)
	}
	e.tickets = append(e.tickets, t)
}

// leaveLocked takes a ticket off a read that was not sent yet.
func (l *Loader) leaveLocked(read provider.Read, t *Ticket) {
	e := l.entries[read]
	if e == nil || e.sent || !slices.Contains(e.tickets, t) {
		return
	}
	e.tickets = slices.DeleteFunc(e.tickets, func(x *Ticket) bool { return x == t })
	if len(e.tickets) == 0 {
		q := l.queueOf(e)
		*q = slices.DeleteFunc(*q, func(x *entry) bool { return x == e })
		delete(l.entries, read)
	}
}

func (l *Loader) queueOf(e *entry) *[]*entry {
	switch {
	case e.read.Search != (provider.Search{}):
		return &l.searches
	case e.urgent:
		return &l.urgent
	}
	return &l.normal
}

// queueLocked puts an entry in its queue. One that has become urgent meanwhile keeps its place in
// time; among searches those that are urgent go first.
func (l *Loader) queueLocked(e *entry) {
	q := l.queueOf(e)
	i := len(*q)
	for i > 0 && e.before((*q)[i-1]) {
		i--
	}
	*q = slices.Insert(*q, i, e)
}

// before reports whether an entry goes before another of its queue.
func (e *entry) before(o *entry) bool {
	if e.urgent != o.urgent {
		return e.urgent
	}
	return e.since.Before(o.since)
}
