package provider

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// loginTimeout limits one login. Several calls can wait for the same login, so none of their contexts ends
	// it.
	loginTimeout = 30 * time.Second
	// renewal is how long before it expires a token is replaced. A short-lived token is replaced in the last
	// quarter of its lifetime.
	renewal = 5 * time.Minute
	// guess is the assumed lifetime of a token without an expiry.
	guess = time.Hour
)

// A Token is an access token.
type Token struct {
	Value string
	// Since is when the token was requested. Expiry is zero if it is not known.
	Since, Expiry time.Time
}

func (t Token) valid() bool { return time.Now().Before(t.Expiry) }

func (t Token) fresh() bool {
	return time.Now().Before(t.Expiry.Add(-min(renewal, t.Expiry.Sub(t.Since)/4)))
}

// Tokens cache one access token for all calls of a Client, and get the next with one login at a time. They are safe for
// concurrent use.
type Tokens struct {
	login func(context.Context) (Token, error)
	ended context.Context // ends when the client is closed, whatever the contexts of its calls
	close context.CancelFunc
	group singleflight.Group

	mu      sync.Mutex
	current Token
}

// NewTokens returns the tokens of a login. ctx is that of Connect; a login has its Kind and tenant, but not its end.
func NewTokens(ctx context.Context, login func(context.Context) (Token, error)) *Tokens {
	t := &Tokens{login: login}
	t.ended, t.close = context.WithCancel(Aside(ctx))
	return t
}

// Close cancels a login in progress.
func (t *Tokens) Close() { t.close() }

// Get returns a token that remains valid for some time. Errors are those of the login or of ctx.
func (t *Tokens) Get(ctx context.Context) (string, error) {
	if now := t.peek(); now.fresh() {
		return now.Value, nil
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
func (t *Tokens) renew() (string, error) {
	old := t.peek()
	if old.fresh() {
		return old.Value, nil
	}
	got, err := t.New(t.ended)
	switch {
	case err == nil:
		if got.Expiry.IsZero() {
			got.Expiry = got.Since.Add(guess)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.current = got
		return got.Value, nil
	case old.valid():
		return old.Value, nil
	}
	return "", err
}

// New logs in for a new token, which it does not cache. The login can run on a separate goroutine, where a panic would stop the
// operator and print its value.
func (t *Tokens) New(ctx context.Context) (Token, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	defer context.AfterFunc(t.ended, cancel)()
	return guard("logging in", func() (Token, error) { return t.login(ctx) })
}

func (t *Tokens) peek() Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// Forget drops a token that the service rejects, unless it has already been replaced.
func (t *Tokens) Forget(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.Value == value {
		t.current = Token{}
	}
}
