package stack

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// hold is a kind of request to hold.
type hold struct {
	like     func(r *http.Request, body []byte) bool
	answered bool
	once     sync.Once
	caught   chan struct{}
}

// holdKey is the context key for the hold of a request whose answer is held.
type holdKey struct{}

// Hold holds requests for which like returns true, until their client disconnects. They never reach the API
// server; if answered is true, they do, and their answer is held. The channel is closed when the first request
// is held.
func (p *Proxy) Hold(answered bool, like func(r *http.Request, body []byte) bool) <-chan struct{} {
	h := &hold{like: like, answered: answered, caught: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, h)
	return h.caught
}

// holding holds matching requests, and passes the others on.
func (p *Proxy) holding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := p.held(r)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case h == nil:
			next.ServeHTTP(w, r)
		case h.answered:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), holdKey{}, h)))
		default:
			_ = h.keep(r.Context()) // The client no longer waits for an answer.
		}
	})
}

// held returns the hold for a request, or nil.
func (p *Proxy) held(r *http.Request) (*hold, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.holds) == 0 || r.Method == http.MethodGet {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	for _, h := range p.holds {
		if h.like(r, body) {
			return h, nil
		}
	}
	return nil, nil
}

// keep waits until the client disconnects.
func (h *hold) keep(ctx context.Context) error {
	h.once.Do(func() { close(h.caught) })
	<-ctx.Done()
	return ctx.Err()
}
