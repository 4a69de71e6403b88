package gcpconfig

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// loginTimeout limits one login. Several calls can wait for the same login, so none of their contexts ends
	// it.
	loginTimeout = 30 * time.Second
	// renewal is how long before it expires a token is replaced. A short-lived token is replaced in the last
	// quarter of its lifetime.
	renewal = 5 * time.Minute
)

// A login gets an access token. Errors that are not of package provider are those of an attempt.
type login interface {
	login(ctx context.Context) (token, error)
}

type token struct {
	value         string
	since, expiry time.Time
}

// guess is the assumed lifetime of a token without an expiry.
const guess = time.Hour

func (t token) valid(now time.Time) bool { return t.value != "" && now.Before(t.expiry) }

func (t token) fresh(now time.Time) bool {
	return t.valid(now) && now.Before(t.expiry.Add(-min(renewal, t.expiry.Sub(t.since)/4)))
}

// tokens caches one access token for all calls, and gets the next with one login at a time.
type tokens struct {
	login login
	now   func() time.Time
	ended context.Context // ends when the client is closed, whatever the contexts of its calls
	close context.CancelFunc
	group singleflight.Group

	mu      sync.Mutex
	current token
}

func newTokens(ctx context.Context, l login) *tokens {
	t := &tokens{login: l, now: time.Now}
	t.ended, t.close = context.WithCancel(provider.Aside(ctx))
	return t
}

// get returns a token that remains valid for some time.
func (t *tokens) get(ctx context.Context) (string, error) {
	if now := t.peek(); now.fresh(t.now()) {
		return now.value, nil
	}
	done := t.group.DoChan("", func() (any, error) { return t.renew() })
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-done:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(string), nil
	}
}

// renew logs in. It ignores a failure while the old token is still valid.
func (t *tokens) renew() (string, error) {
	old := t.peek()
	if old.fresh(t.now()) {
		return old.value, nil
	}
	ctx, cancel := context.WithTimeout(t.ended, loginTimeout)
	defer cancel()
	got, err := guarded(ctx, t.login)
	switch {
	case err == nil:
		if got.expiry.IsZero() {
			got.expiry = got.since.Add(guess)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.current = got
		return got.value, nil
	case old.valid(t.now()):
		return old.value, nil
	}
	return "", err
}

// newToken logs in for a new token, which it does not cache.
func (t *tokens) newToken(ctx context.Context) (token, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	defer context.AfterFunc(t.ended, cancel)()
	return guarded(ctx, t.login)
}

// guarded logs in on a separate goroutine, where a panic would stop the operator and print its value.
func guarded(ctx context.Context, l login) (got token, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = provider.NewError(provider.Unavailable, "cannot log in: the provider's code failed (%T)", r)
		}
	}()
	return l.login(ctx)
}

func (t *tokens) peek() token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// forget drops a token that Google rejects, unless it has already been replaced.
func (t *tokens) forget(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.value == value {
		t.current = token{}
	}
}
