package provider_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// counting is a login that numbers its tokens.
type counting struct {
	n        int
	lifetime time.Duration // 0 means unknown
	err      error
}

func (c *counting) login(context.Context) (provider.Token, error) {
	if c.err != nil {
		return provider.Token{}, c.err
	}
	c.n++
	t := provider.Token{Value: fmt.Sprint(c.n), Since: time.Now()}
	if c.lifetime > 0 {
		t.Expiry = t.Since.Add(c.lifetime)
	}
	return t, nil
}

func TestTokens(t *testing.T) {
	type step struct {
		reason string
		after  time.Duration
		err    error
		forget string
		want   string
	}
	cases := map[string]struct {
		reason   string
		lifetime time.Duration
		steps    []step
	}{
		"Hour": {"A token is used until shortly before it expires.", time.Hour, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"Further calls use the cached token.", 54 * time.Minute, nil, "", "1"},
			{"Shortly before it expires the token is replaced.", 2 * time.Minute, nil, "", "2"},
		}},
		"Short": {"A short-lived token is used for most of its life.", time.Minute, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"Further calls use the cached token.", 44 * time.Second, nil, "", "1"},
			{"In the last quarter of its life the token is replaced.", 2 * time.Second, nil, "", "2"},
		}},
		"Failing": {"A failed login has no effect while the token is valid.", time.Hour, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"The old token is used while the login fails.", 56 * time.Minute, errBoom, "", "1"},
			{"The calls fail after the old token has expired.", 5 * time.Minute, errBoom, "", ""},
			{"The next login that works returns a new token.", 0, nil, "", "2"},
		}},
		"Untold": {"A token without an expiry is used for most of an hour.", 0, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"Further calls use the cached token.", 54 * time.Minute, nil, "", "1"},
			{"Shortly before the assumed expiry the token is replaced.", 2 * time.Minute, nil, "", "2"},
		}},
		"Forgotten": {"A rejected token is replaced, but only once.", time.Hour, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"The service rejects the token.", 0, nil, "1", "2"},
			{"A late rejection of the old token does not replace the new one.", 0, nil, "1", "2"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &counting{lifetime: tc.lifetime}
				ts := provider.NewTokens(t.Context(), l.login)
				defer ts.Close()
				for _, s := range tc.steps {
					time.Sleep(s.after)
					l.err = s.err
					ts.Forget(s.forget)
					got, err := ts.Get(t.Context())
					if got != s.want || (err != nil) != (s.want == "") {
						t.Errorf("%s\n%s\ngot %q, %v, want %q", tc.reason, s.reason, got, err, s.want)
					}
				}
			})
		})
	}
}

func TestTokensHang(t *testing.T) {
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	ts := provider.NewTokens(t.Context(), func(ctx context.Context) (provider.Token, error) {
		begin()
		<-ctx.Done()
		return provider.Token{}, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { _, err := ts.Get(ctx); ended <- err }()
	<-began
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller must return when its context ends: %v", err)
	}
	go func() { _, err := ts.Get(t.Context()); ended <- err }()
	ts.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a login must end when the client is closed: %v", err)
	}
}

func TestTokensPanic(t *testing.T) {
	ts := provider.NewTokens(t.Context(), func(context.Context) (provider.Token, error) { panic("hunter2") })
	defer ts.Close()
	_, err := ts.Get(t.Context())
	if diff := cmp.Diff(error(provider.NewError(provider.Unavailable, "the provider's code failed while logging in (string)")), err); diff != "" {
		t.Errorf("A panic must be an error that hides its value: -want, +got:\n%s", diff)
	}
}
