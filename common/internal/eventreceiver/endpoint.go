// Package eventreceiver is an HTTP server for signed reports about changed secrets. It knows nothing of Kubernetes.
package eventreceiver

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

const (
	// perSecond and burst limit the reports of one path.
	perSecond, burst = 20, 100
	// queued is the maximum number of reports of one path that Receive has not returned.
	//limit:events Reports of one EventReceiver that wait, whose keys count as memory of the tenant | metric=directsecrets_event_requests_refused_total | The request is refused with status 429.
	queued = 200
	// maxSeen is the maximum number of signatures that one path remembers. The rate allows 12,100 within the 10 minutes for which a
	// timestamp in the future stays valid.
	maxSeen = 15_000
	// sweepEvery is the time between two removals of old signatures.
	sweepEvery = time.Minute
	// MinKey is the minimum length of a key in bytes.
	MinKey = 32
)

// A Report is the content of an authenticated request.
type Report struct {
	// Receipt identifies the report for Done.
	Receipt string
	// Keys are the keys of the secrets that have changed.
	Keys []string
	// Malformed is true if the body has no expected form. Then it has no keys, and no request waits for Done.
	Malformed bool
	// At is when the request was received.
	At time.Time
}

// Endpoints are the paths at which reports are received.
type Endpoints struct {
	mu sync.Mutex
	// Bound: one per event source.
	byPath map[string]*endpoint
}

// endpoint is one path.
type endpoint struct {
	// reports are closed when the last Endpoint of the path is.
	reports chan pending
	limiter *rate.Limiter
	// closed is closed with reports.
	closed chan struct{}

	mu sync.Mutex
	// open are the users of the path. The key of the last one counts.
	open []*Endpoint
	// seen are the accepted signatures, with the time at which their timestamps become invalid. swept is when old ones were removed.
	// Bound: maxSeen.
	seen  map[signature]time.Time
	swept time.Time
	// waiting are the requests that wait for Done, by receipt.
	// Bound: one per open request.
	waiting  map[string]chan int
	receipts int
}

// signature is an HMAC-SHA256.
type signature [sha256.Size]byte

// An Endpoint receives the reports of one path, until it is closed.
type Endpoint struct {
	at     *endpoint
	key    []byte
	tenant *quota.Tenant
	close  func()
	// taken are the bytes of the reports of the last Receive. ended is true once the Endpoint is closed.
	taken []*quota.Held
	ended bool
}

// Open receives the reports of a path that are signed with a key. Their keys count for the tenant until they are handled. It replaces the key of an earlier Endpoint of the path, which gets
// reports as well until it is closed.
func (s *Endpoints) Open(path string, key []byte, t *quota.Tenant) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byPath[path]
	if at == nil {
		at = &endpoint{
			reports: make(chan pending, queued), limiter: rate.NewLimiter(perSecond, burst), closed: make(chan struct{}),
			seen: map[signature]time.Time{}, waiting: map[string]chan int{},
		}
		if s.byPath == nil {
			s.byPath = map[string]*endpoint{}
		}
		s.byPath[path] = at
	}
	e := &Endpoint{at: at, key: block(key), tenant: t}
	e.close = sync.OnceFunc(func() { s.remove(path, e) })
	at.mu.Lock()
	defer at.mu.Unlock()
	at.open = append(at.open, e)
	return e
}

// block returns a key of at most one block with the same HMAC, so that no key costs more than another; see RFC 2104.
func block(key []byte) []byte {
	if len(key) > sha256.BlockSize {
		sum := sha256.Sum256(key)
		return sum[:]
	}
	return append([]byte(nil), key...)
}

func (s *Endpoints) remove(path string, e *Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.at.mu.Lock()
	defer e.at.mu.Unlock()
	e.at.open = slices.DeleteFunc(e.at.open, func(o *Endpoint) bool { return o == e })
	e.ended = true
	e.handledLocked()
	if len(e.at.open) == 0 {
		delete(s.byPath, path)
		close(e.at.closed)
		close(e.at.reports)
		for p := range e.at.reports {
			p.held.Release()
		}
	}
}

// find returns a path and its key; nil if the path is unknown.
func (s *Endpoints) find(path string) (*endpoint, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.byPath[path]
	if at == nil {
		return nil, nil
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	return at, at.open[len(at.open)-1].key
}

// Close ends the Endpoint. With the last one of a path, the requests that wait there are answered.
func (e *Endpoint) Close() error {
	e.close()
	return nil
}

// Receive waits for reports until ctx ends, and returns up to n. Those of the last call are handled.
func (e *Endpoint) Receive(ctx context.Context, n int) (all []Report) {
	e.at.mu.Lock()
	e.handledLocked()
	e.at.mu.Unlock()
	select {
	case p, ok := <-e.at.reports:
		if !ok {
			return nil
		}
		all = append(all, e.take(p))
	case <-ctx.Done():
		return nil
	}
	for len(all) < n {
		select {
		case p, ok := <-e.at.reports:
			if !ok {
				return all
			}
			all = append(all, e.take(p))
		default:
			return all
		}
	}
	return all
}

// take returns a report whose bytes count until the next Receive.
func (e *Endpoint) take(p pending) Report {
	e.at.mu.Lock()
	defer e.at.mu.Unlock()
	if e.taken = append(e.taken, p.held); e.ended {
		e.handledLocked()
	}
	return p.Report
}

func (e *Endpoint) handledLocked() {
	for _, held := range e.taken {
		held.Release()
	}
	e.taken = nil
}

// Done completes the request of a report. matched is the number of its keys that objects use.
func (e *Endpoint) Done(receipt string, matched int) {
	e.at.mu.Lock()
	defer e.at.mu.Unlock()
	if w := e.at.waiting[receipt]; w != nil {
		w <- matched // Its only value, so there is room.
		delete(e.at.waiting, receipt)
	}
}

// pending is a report that was queued.
type pending struct {
	Report

	at *endpoint
	// done gets the value of Done.
	done chan int
	// held are the bytes of the keys.
	held *quota.Held
}

// admit queues a report whose signature is right and valid until a time, or returns the status of the refusal.
func (e *endpoint) admit(r Report, of signature, until time.Time) (p pending, refused int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.open) == 0 {
		return p, http.StatusServiceUnavailable
	}
	if r.At.Sub(e.swept) > sweepEvery {
		e.swept = r.At
		maps.DeleteFunc(e.seen, func(_ signature, until time.Time) bool { return r.At.After(until) })
	}
	if _, ok := e.seen[of]; ok {
		return p, http.StatusUnauthorized
	}
	p = pending{r, e, make(chan int, 1), e.open[len(e.open)-1].tenant.Holder(nil)}
	if len(e.seen) >= maxSeen || len(e.reports) == cap(e.reports) || !e.limiter.AllowN(r.At, 1) || !p.held.TryGrow(bytesOf(r.Keys)) {
		return p, http.StatusTooManyRequests // The sender can repeat it.
	}
	e.receipts++
	p.Receipt = strconv.Itoa(e.receipts)
	e.seen[of] = until
	if !r.Malformed {
		e.waiting[p.Receipt] = p.done
	}
	e.reports <- p // Only admit adds reports, so there is room.
	return p, 0
}

func bytesOf(keys []string) (n int64) {
	for _, k := range keys {
		n += int64(len(k))
	}
	return n
}

// forget ends the wait of a request.
func (e *endpoint) forget(receipt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.waiting, receipt)
}
