package gcpconfig

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// loginTimeout bounds one login. It is shared by all calls that wait for it, so it does not end
	// with any of them.
	loginTimeout = 30 * time.Second
	// renewal is how long before its end a token is replaced. Short-lived ones are replaced in the
	// last quarter of their life.
	renewal = 5 * time.Minute
)

// A login gets an access token. Errors that are not of package store are those of an attempt.
type login interface {
	login(ctx context.Context) (token, error)
}

type token struct {
	value         string
	since, expiry time.Time
}

// guess is how long a token is taken to be good whose end nobody told.
const guess = time.Hour

func (t token) valid(now time.Time) bool { return t.value != "" && now.Before(t.expiry) }

func (t token) fresh(now time.Time) bool {
	return t.valid(now) && now.Before(t.expiry.Add(-min(renewal, t.expiry.Sub(t.since)/4)))
}

// tokens keep one access token for all calls, and get the next by one login at a time.
type tokens struct {
	login login
	now   func() time.Time
	ended context.Context // ends with the client, which no call's context knows of
	close context.CancelFunc
	group singleflight.Group

	mu      sync.Mutex
	current token
}

func newTokens(l login) *tokens {
	t := &tokens{login: l, now: time.Now}
	t.ended, t.close = context.WithCancel(context.Background())
	return t
}

// get returns a token that is good for a while.
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

// renew logs in. While an older token still holds, a failure does no harm.
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

// anew logs in for a token that nobody has been given yet. It is not kept.
func (t *tokens) anew(ctx context.Context) (token, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	defer context.AfterFunc(t.ended, cancel)()
	return guarded(ctx, t.login)
}

// guarded logs in on a goroutine of its own, where a panic would end the operator and show its value.
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

// forget drops a token that Google does not take, unless it has been replaced already.
func (t *tokens) forget(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.value == value {
		t.current = token{}
	}
}
