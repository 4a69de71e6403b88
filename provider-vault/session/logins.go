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
	// loginTimeout limits one login. Several calls can wait for the same login, so none of their contexts ends
	// it.
	loginTimeout = 30 * time.Second
	// closeTimeout limits the revocation of a token. A token that is not revoked expires.
	closeTimeout = 5 * time.Second
	// loginPause is the minimum age of a session that Vault has never accepted, before another login. It
	// prevents a loop of logins if the next token would not be accepted either.
	loginPause = 10 * time.Second
	// blindPause is the same for logins whose tokens cannot look themselves up.
	blindPause = 5 * time.Minute
)

// logins manages the only session of a client. The session is created when it is first needed, shared by
// concurrent calls, renewed in the background, and replaced when it expires.
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
	// blind is set if a new token cannot look itself up. A denied lookup is then no proof of an expired token.
	blind bool
}

func newLogins(ctx context.Context, s *server, m *method) *logins {
	l := &logins{server: s, method: m}
	l.ctx, l.cancel = context.WithCancel(provider.Aside(ctx))
	return l
}

var errClosed = provider.NewError(provider.Unavailable, "the settings or credentials of the store changed meanwhile; retrying")

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

// lasting is session for a request that creates credentials, which Vault revokes together with the token. The
// token has at least half of its time left, if possible, and is not revoked when the client is closed.
func (l *logins) lasting(ctx context.Context) (*Session, error) {
	s, err := l.session(ctx)
	if err == nil && !s.fresh() {
		// The credentials created with the old token stay valid until it expires.
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
		return nil, errClosed // The token may already be revoked.
	}
	s.used.Store(true)
	return s, nil
}

// prolong renews the token of a session, if possible.
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

// shared runs f once for all concurrent callers. It continues if one of them stops waiting.
func (l *logins) shared(ctx context.Context, what string, f func(context.Context) (*Session, error)) (*Session, error) {
	answer := l.flight.DoChan(what, func() (_ any, err error) {
		defer func() {
			// Only this goroutine can recover the panic. The panic's value can contain a secret.
			if recover() != nil {
				err = provider.NewError(provider.Unavailable, "the operator failed during the %s; see its log", what)
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

// hold makes a session the present one, and keeps it valid.
func (l *logins) hold(s *Session) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.work.Go(func() { end(l.ctx, s) })
		return errClosed
	}
	l.current = s
	if s.token.lease > 0 {
		l.work.Go(func() { l.keep(s) })
	}
	return nil
}

// forget makes the next call log in again, unless the session has already been replaced.
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
		end(l.ctx, s)
	}
	l.work.Wait()
}

// end revokes a token that only this client uses, and that no credentials depend on. If that fails, the token
// expires. ctx is that of the login; it may have ended.
func end(ctx context.Context, s *Session) {
	if !s.own || s.used.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(provider.Aside(ctx), closeTimeout)
	defer cancel()
	_ = s.revoke(ctx)
}

// ended reports, after a denied call, whether the session has expired. If it has, the next call logs in again.
// A missing permission causes no login.
func (l *logins) ended(ctx context.Context, s *Session, denied *Refusal) bool {
	if !l.present(s) {
		return true // Another call has already found that the session has expired.
	}
	l.mu.Lock()
	blind := l.blind
	l.mu.Unlock()
	switch age := time.Since(s.since); {
	case !s.worked.Load() && age < loginPause:
		return false
	case denied.Contains(invalidToken):
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
	l.checkSelfLookup(ctx)
	return true
}

// invalidToken is Vault's text for an unknown token since 1.13. Before, and with OpenBao, only a lookup
// distinguishes such a token from a missing permission.
const invalidToken = "invalid token"

// checkSelfLookup sets blind if new tokens cannot look themselves up.
func (l *logins) checkSelfLookup(ctx context.Context) {
	s, err := l.session(ctx)
	if err != nil {
		return // The next call fails in the same way.
	}
	if _, err = s.lookup(ctx); StatusOf(err) == http.StatusForbidden {
		l.mu.Lock()
		l.blind = true
		l.mu.Unlock()
	}
}
