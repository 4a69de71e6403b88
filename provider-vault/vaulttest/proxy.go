package vaulttest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Proxy runs in front of a server. It counts requests, and can answer instead of the server.
type Proxy struct {
	// URL is that of the proxy.
	URL string

	mu     sync.Mutex
	calls  []Call
	faults []*fault
}

// A Call is a request that the proxy has received.
type Call struct {
	// Method is LIST for a GET that asks for a list.
	Method string
	// Path is the part after /v1/, not escaped.
	Path string
	// Header is that of the request.
	Header http.Header
}

type fault struct {
	hits   func(Call) bool
	answer http.HandlerFunc
}

func newProxy(t testing.TB, address string) *Proxy {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{}
	next := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := p.note(callOf(r)); answer != nil {
			answer(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	p.URL = srv.URL
	return p
}

func callOf(r *http.Request) Call {
	c := Call{Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, "/v1/"), Header: r.Header.Clone()}
	if r.URL.Query().Get("list") == "true" {
		c.Method = "LIST"
	}
	return c
}

func (p *Proxy) note(c Call) http.HandlerFunc {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	for _, f := range p.faults {
		if f.hits(c) {
			return f.answer
		}
	}
	return nil
}

// Inject makes the proxy answer the matching calls, until remove is called.
func (p *Proxy) Inject(hits func(Call) bool, answer http.HandlerFunc) (remove func()) {
	f := &fault{hits, answer}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = slices.DeleteFunc(p.faults, func(o *fault) bool { return o == f })
	}
}

// Refuse answers with a status, in Vault's format.
func Refuse(status int) http.HandlerFunc { return RefuseWith(status, "injected") }

// RefuseWith is Refuse with a text.
func RefuseWith(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(M{"errors": []string{text}}) // The client may have closed the connection.
	}
}

// Hang returns when the caller closes the connection, which is detected only after the body was read.
func Hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // The error does not matter.
	<-r.Context().Done()
}

// Calls returns the calls since the last Reset.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Reset clears the calls.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// Count returns the number of matching calls.
func (p *Proxy) Count(hits func(Call) bool) int {
	n := 0
	for _, c := range p.Calls() {
		if hits(c) {
			n++
		}
	}
	return n
}

// IsLogin reports whether a call is a login.
func IsLogin(c Call) bool {
	return c.Method != http.MethodGet && strings.HasPrefix(c.Path, "auth/") && (strings.HasSuffix(c.Path, "/login") || strings.Contains(c.Path, "/login/"))
}

// IsRead reports whether a call reads a secret of a KV v2 engine.
func IsRead(c Call) bool { return c.Method == http.MethodGet && strings.Contains(c.Path, "/data/") }

// IsList reports whether a call lists.
func IsList(c Call) bool { return c.Method == "LIST" }

// On returns a function that matches the calls of one path.
func On(path string) func(Call) bool { return func(c Call) bool { return c.Path == path } }
