package stack

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
)

// hold is a kind of request that does not go on.
type hold struct {
	like     func(r *http.Request, body []byte) bool
	answered bool
	once     sync.Once
	caught   chan struct{}
}

// holdKey is the key of the context that carries the hold of a request whose answer is held.
type holdKey struct{}

// Hold has requests held that are like what the caller looks for, until their client is gone: they never
// reach the API server; or, if answered is true, they are carried out, and their answer is held. The
// channel is closed when the first is held.
func (p *Proxy) Hold(answered bool, like func(r *http.Request, body []byte) bool) <-chan struct{} {
	h := &hold{like: like, answered: answered, caught: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = append(p.holds, h)
	return h.caught
}

// holding holds what is to be held, and passes on the rest.
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
			_ = h.keep(r.Context()) // Nobody waits for an answer any more.
		}
	})
}

// held returns the hold that a request is under; nil for none.
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

// keep returns when the client is gone.
func (h *hold) keep(ctx context.Context) error {
	h.once.Do(func() { close(h.caught) })
	<-ctx.Done()
	return ctx.Err()
}
