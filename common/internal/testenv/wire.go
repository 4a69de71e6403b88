package testenv

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// RoundTripper is an http.RoundTripper that is a function.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A Lag delays the events of a client's watches of a resource, so that its cache falls behind.
type Lag struct {
	resource string
	mu       sync.Mutex
	cond     *sync.Cond
	held     bool
}

// NewLag returns a Lag that does not delay events yet.
func NewLag(resource string) *Lag {
	l := &Lag{resource: resource}
	l.cond = sync.NewCond(&l.mu)
	return l
}

// Hold starts or ends the delay.
func (l *Lag) Hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	l.cond.Broadcast()
}

// Wrap is a WrapTransport of a rest.Config.
func (l *Lag) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") == "true" && strings.HasSuffix(r.URL.Path, "/"+l.resource) {
			resp.Body = &lagging{ReadCloser: resp.Body, lag: l}
		}
		return resp, err
	})
}

type lagging struct {
	io.ReadCloser
	lag *Lag
}

// Read returns its data when the delay is over.
func (b *lagging) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.lag.mu.Lock()
	defer b.lag.mu.Unlock()
	for b.lag.held && err == nil {
		b.lag.cond.Wait()
	}
	return n, err
}

// A Gate refuses requests of an operator.
type Gate struct {
	mu     sync.Mutex
	refuse func(*http.Request) bool
	// swallow sends refused requests to the server, and loses only their answers.
	swallow bool
	// Hits counts the refused requests.
	Hits atomic.Int32
}

// Wrap is a WrapTransport of a rest.Config.
func (g *Gate) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		g.mu.Lock()
		refuse, swallow := g.refuse, g.swallow
		g.mu.Unlock()
		refused := refuse != nil && refuse(r)
		if !refused {
			return next.RoundTrip(r)
		}
		if swallow {
			if resp, err := next.RoundTrip(r); err == nil {
				_ = resp.Body.Close()
			}
		}
		return failed(r, http.StatusInternalServerError, "InternalError"), nil
	})
}

// Lose sends matching requests to the server and loses their answers, until the returned function is called.
func (g *Gate) Lose(f func(*http.Request) bool) (open func()) {
	open = g.Close(f)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.swallow = true
	return open
}

// Close refuses matching requests until the returned function is called.
func (g *Gate) Close(f func(*http.Request) bool) (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Hits.Store(0)
	g.refuse, g.swallow = func(r *http.Request) bool {
		hit := f(r)
		if hit {
			g.Hits.Add(1)
		}
		return hit
	}, false
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refuse = nil
	}
}

// A Pause delays one request of an operator before it is sent.
type Pause struct {
	mu    sync.Mutex
	match func(*http.Request) bool
	held  chan struct{}
	over  chan struct{}
	// End sends the delayed request.
	End func()
}

// NewPause returns a Pause that ends with the test at the latest.
func NewPause(t *testing.T) *Pause {
	p := &Pause{held: make(chan struct{}), over: make(chan struct{})}
	p.End = sync.OnceFunc(func() { close(p.over) })
	t.Cleanup(p.End)
	return p
}

// Before delays the next request that f matches.
func (p *Pause) Before(f func(*http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.match = f
}

// Wait returns when a request is delayed.
func (p *Pause) Wait() { <-p.held }

// Wrap is a WrapTransport of a rest.Config.
func (p *Pause) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		p.mu.Lock()
		hit := p.match != nil && p.match(r)
		if hit {
			p.match = nil
		}
		p.mu.Unlock()
		if hit {
			close(p.held)
			<-p.over
		}
		return next.RoundTrip(r)
	})
}

// A Break breaks a client's watch of a resource, so that it has to list the objects again, and does not see what happened meanwhile.
type Break struct {
	resource string
	mu       sync.Mutex
	broken   bool
	watches  []io.Closer
}

// NewBreak returns a Break whose watches work.
func NewBreak(resource string) *Break { return &Break{resource: resource} }

// Wrap is a WrapTransport of a rest.Config.
func (b *Break) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/"+b.resource) {
			return next.RoundTrip(r)
		}
		resp, err := next.RoundTrip(r)
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case err != nil:
		case b.broken:
			_ = resp.Body.Close()
			return failed(r, http.StatusGone, "Expired"), nil
		case r.URL.Query().Get("watch") == "true":
			b.watches = append(b.watches, resp.Body)
		}
		return resp, err
	})
}

// Start breaks all watches until the returned function is called.
func (b *Break) Start() (end func()) {
	b.set(true)
	return func() { b.set(false) }
}

func (b *Break) set(broken bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = broken
	for _, w := range b.watches {
		_ = w.Close()
	}
	b.watches = nil
}

// failed returns the answer of an API server that refuses a request.
func failed(r *http.Request, code int, reason string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"injected","code":%d}`, reason, code)
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}
