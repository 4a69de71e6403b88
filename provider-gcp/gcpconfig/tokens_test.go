package gcpconfig

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// counting is a login that numbers its tokens.
type counting struct {
	mu       sync.Mutex
	n        int
	now      *time.Time
	lifetime time.Duration // 0 means unknown
	err      error
}

func (c *counting) login(context.Context) (token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return token{}, c.err
	}
	c.n++
	t := token{value: fmt.Sprint(c.n), since: *c.now}
	if c.lifetime > 0 {
		t.expiry = c.now.Add(c.lifetime)
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
			{"Google rejects the token.", 0, nil, "1", "2"},
			{"A late rejection of the old token does not replace the new one.", 0, nil, "1", "2"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			l := &counting{now: &now, lifetime: tc.lifetime}
			ts := newTokens(t.Context(), l)
			defer ts.close()
			ts.now = func() time.Time { return now }
			for _, s := range tc.steps {
				now, l.err = now.Add(s.after), s.err
				ts.forget(s.forget)
				got, err := ts.get(t.Context())
				if got != s.want || (err != nil) != (s.want == "") {
					t.Errorf("%s\n%s\ngot %q, %v, want %q", tc.reason, s.reason, got, err, s.want)
				}
			}
		})
	}
}

// hanging is a login that waits for the end of its context.
type hanging struct{ begin func() }

func (h hanging) login(ctx context.Context) (token, error) {
	h.begin()
	<-ctx.Done()
	return token{}, ctx.Err()
}

func TestTokensHang(t *testing.T) {
	began := make(chan struct{})
	ts := newTokens(t.Context(), hanging{begin: sync.OnceFunc(func() { close(began) })})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { _, err := ts.get(ctx); ended <- err }()
	<-began
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a caller must return when its context ends: %v", err)
	}
	go func() { _, err := ts.get(t.Context()); ended <- err }()
	ts.close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a login must end when the client is closed: %v", err)
	}
}

// broken is a login that panics.
type broken struct{}

func (broken) login(context.Context) (token, error) { panic(secret) }

func TestTokensPanic(t *testing.T) {
	ts := newTokens(t.Context(), broken{})
	defer ts.close()
	_, err := ts.get(t.Context())
	if diff := cmp.Diff(error(provider.NewError(provider.Unavailable, "cannot log in: the provider's code failed (string)")), err); diff != "" {
		t.Errorf("A panic must be an error that hides its value: -want, +got:\n%s", diff)
	}
}

func TestNewToken(t *testing.T) {
	now := time.Unix(0, 0)
	cases := map[string]struct {
		reason string
		value  string
		expiry time.Time
		ok     bool
	}{
		"Good":    {"A token that is valid in a header is accepted.", "ya29.a0-_~+/=", now.Add(time.Hour), true},
		"Empty":   {"An empty token is rejected.", "", now.Add(time.Hour), false},
		"Newline": {"A token with a line break is rejected.", "a\nb", now.Add(time.Hour), false},
		"Over":    {"An expired token is rejected.", "a", now, false},
		"Unset":   {"A token without an expiry is rejected.", "a", time.Time{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newToken(tc.value, now, tc.expiry)
			if diff := cmp.Diff(tc.ok, err == nil); diff != "" {
				t.Errorf("%s\nnewToken(...): %v", tc.reason, err)
			}
		})
	}
}
