package session

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// loginTimeout bounds one login. It is shared by all calls that wait for it, so it does not end
	// with any of them.
	loginTimeout = 30 * time.Second
	// closeTimeout bounds the end of a session. A token that is not revoked ends by itself.
	closeTimeout = 5 * time.Second
	// loginPause is how long a session lasts at least that Vault never accepted: where the next one
	// would not be accepted either, logins must not follow each other.
	loginPause = 10 * time.Second
	// blindPause is that for identities whose tokens may not look themselves up.
	blindPause = 5 * time.Minute
)

// logins hold the one session of a client: made when it is first needed, shared by concurrent calls,
// renewed in the background, and replaced when it ends.
type logins struct {
	server *server
	method *method

	// ctx ends when the client is closed.
	ctx    context.Context
	cancel context.CancelFunc
	flight singleflight.Group
	work   sync.WaitGroup

	mu      sync.Mutex
	current *Session
	closed  bool
	// blind is true where a token that was just made may not look itself up: a denied lookup then
	// proves nothing.
	blind bool
}

func newLogins(s *server, m *method) *logins {
	l := &logins{server: s, method: m}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

var errClosed = provider.NewError(provider.Unavailable, "the store's settings or credentials have changed meanwhile")

// session returns the present session, or logs in.
func (l *logins) session(ctx context.Context) (*Session, error) {
	if s, err := l.held(); s != nil || err != nil {
		return s, err
	}
	return l.shared(ctx, "login", func(ctx context.Context) (*Session, error) {
		if s, err := l.held(); s != nil || err != nil {
			return s, err
		}
		s, err := l.method.login(ctx, l.server)
		if err != nil {
			return nil, err
		}
		return s, l.hold(s)
	})
}

// lasting is session for a request that makes what dies with the token: the token has at least half of its
// time before it, where that can be had, and is not revoked when the client is closed.
func (l *logins) lasting(ctx context.Context) (*Session, error) {
	s, err := l.session(ctx)
	if err == nil && !s.fresh() {
		// What was made by the old token goes on until that ends.
		if err := l.prolong(ctx, s); s.own && (err != nil || !s.fresh()) {
			l.forget(s)
		}
		s, err = l.session(ctx)
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed // Its token may be revoked already.
	}
	s.used.Store(true)
	return s, nil
}

// prolong renews the token of a session, if it can be.
func (l *logins) prolong(ctx context.Context, s *Session) error {
	if !s.token.renewable || s.token.lease == 0 {
		return nil
	}
	_, err := l.shared(ctx, "renewal", func(ctx context.Context) (*Session, error) {
		_, err := s.renew(ctx)
		return s, err
	})
	return err
}

// shared does something once for all that ask for it at the same time. It goes on when one of them
// gives up.
func (l *logins) shared(ctx context.Context, what string, f func(context.Context) (*Session, error)) (*Session, error) {
	answer := l.flight.DoChan(what, func() (_ any, err error) {
		defer func() {
			// Nobody else could: this is a goroutine of its own. What panicked may hold a secret.
			if recover() != nil {
				err = provider.NewError(provider.Unavailable, "the provider's code failed during the %s", what)
			}
		}()
		ctx, cancel := context.WithTimeout(l.ctx, loginTimeout)
		defer cancel()
		return f(ctx)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-answer:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Session), nil
	}
}

func (l *logins) held() (*Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	return l.current, nil
}

// hold makes a session the present one, and keeps it alive.
func (l *logins) hold(s *Session) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.work.Go(func() { end(s) })
		return errClosed
	}
	l.current = s
	if s.token.lease > 0 {
		l.work.Go(func() { l.keep(s) })
	}
	return nil
}

// forget makes the next call log in anew, unless the session has been replaced already.
func (l *logins) forget(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == s {
		l.current = nil
	}
}

func (l *logins) present(s *Session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current == s
}

// close ends the session.
func (l *logins) close() {
	l.mu.Lock()
	s := l.current
	l.current, l.closed = nil, true
	l.mu.Unlock()
	l.cancel()
	if s != nil {
		end(s)
	}
	l.work.Wait()
}

// end revokes a token that nobody else has, and with which nothing dies. If that fails the token ends
// when its time is up.
func end(s *Session) {
	if !s.own || s.used.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = s.revoke(ctx)
}

// ended reports, after a call was denied, whether that was because the session has ended; the next
// one is then made by the next call. A plain permission error costs no login.
func (l *logins) ended(ctx context.Context, s *Session, denied *Refusal) bool {
	if !l.present(s) {
		return true // Another call has found that out.
	}
	l.mu.Lock()
	blind := l.blind
	l.mu.Unlock()
	switch age := time.Since(s.since); {
	case !s.worked.Load() && age < loginPause:
		return false
	case denied.Says(invalidToken):
		l.forget(s)
		return true
	case s.provenLately(), blind && age < blindPause:
		return false
	}
	_, err := l.shared(ctx, "lookup", func(ctx context.Context) (*Session, error) {
		_, err := s.lookup(ctx)
		return s, err
	})
	if StatusOf(err) != http.StatusForbidden {
		return false
	}
	l.forget(s)
	l.look(ctx)
	return true
}

// invalidToken is what Vault says since 1.13 to a token that it does not know. Before, and at
// OpenBao, only a lookup tells such a token from one that lacks a permission.
const invalidToken = "invalid token"

// look finds out whether new tokens can look themselves up.
func (l *logins) look(ctx context.Context) {
	s, err := l.session(ctx)
	if err != nil {
		return // The call that follows fails likewise.
	}
	if _, err = s.lookup(ctx); StatusOf(err) == http.StatusForbidden {
		l.mu.Lock()
		l.blind = true
		l.mu.Unlock()
	}
}
