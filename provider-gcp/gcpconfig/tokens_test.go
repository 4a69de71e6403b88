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
	mu   sync.Mutex
	n    int
	now  *time.Time
	life time.Duration // 0: nobody tells
	err  error
}

func (c *counting) login(context.Context) (token, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return token{}, c.err
	}
	c.n++
	t := token{value: fmt.Sprint(c.n), since: *c.now}
	if c.life > 0 {
		t.expiry = c.now.Add(c.life)
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
		reason string
		life   time.Duration
		steps  []step
	}{
		"Hour": {"A token is used until shortly before its end.", time.Hour, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"Others do not.", 54 * time.Minute, nil, "", "1"},
			{"Some time before its end it is replaced.", 2 * time.Minute, nil, "", "2"},
		}},
		"Short": {"A short-lived one is used for most of its life.", time.Minute, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"Others do not.", 44 * time.Second, nil, "", "1"},
			{"In its last quarter it is replaced.", 2 * time.Second, nil, "", "2"},
		}},
		"Failing": {"While a token holds, a login that fails does no harm.", time.Hour, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"The token is due, but no other is to be had.", 56 * time.Minute, errBoom, "", "1"},
			{"It is over.", 5 * time.Minute, errBoom, "", ""},
			{"The login works again.", 0, nil, "", "2"},
		}},
		"Untold": {"A token whose end is not known is used for most of an hour.", 0, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"Others do not.", 54 * time.Minute, nil, "", "1"},
			{"Some time before the end that is guessed it is replaced.", 2 * time.Minute, nil, "", "2"},
		}},
		"Forgotten": {"A token that is refused is replaced at once, but only by who saw it refused first.", time.Hour, []step{
			{"The first call logs in.", 0, nil, "", "1"},
			{"Refused.", 0, nil, "1", "2"},
			{"A late refusal of the older one says nothing about the newer.", 0, nil, "1", "2"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			l := &counting{now: &now, life: tc.life}
			ts := newTokens(l)
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

// hanging is a login that ends with its context.
type hanging struct{ begin func() }

func (h hanging) login(ctx context.Context) (token, error) {
	h.begin()
	<-ctx.Done()
	return token{}, ctx.Err()
}

func TestTokensHang(t *testing.T) {
	began := make(chan struct{})
	ts := newTokens(hanging{begin: sync.OnceFunc(func() { close(began) })})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { _, err := ts.get(ctx); ended <- err }()
	<-began
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("A caller waits no longer than it wants: %v", err)
	}
	go func() { _, err := ts.get(t.Context()); ended <- err }()
	ts.close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("A login ends with the client: %v", err)
	}
}

// broken is a login with a defect.
type broken struct{}

func (broken) login(context.Context) (token, error) { panic(secret) }

func TestTokensPanic(t *testing.T) {
	ts := newTokens(broken{})
	defer ts.close()
	_, err := ts.get(t.Context())
	if diff := cmp.Diff(error(provider.NewError(provider.Unavailable, "cannot log in: the provider's code failed (string)")), err); diff != "" {
		t.Errorf("A defect is an error, and its value stays hidden: -want, +got:\n%s", diff)
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
		"Good":    {"A token is text that fits into a header.", "ya29.a0-_~+/=", now.Add(time.Hour), true},
		"Empty":   {"Nothing is no token.", "", now.Add(time.Hour), false},
		"Newline": {"A header has one line.", "a\nb", now.Add(time.Hour), false},
		"Over":    {"A token that has expired is none.", "a", now, false},
		"Unset":   {"So is one whose end is not known.", "a", time.Time{}, false},
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
