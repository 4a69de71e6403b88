package azureconfig

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
)

// A doerFunc is a doer.
type doerFunc func(r *http.Request) (*http.Response, error)

func (f doerFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

func answerOf(status int, challenge string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{challengeHeader: {challenge}}, Body: io.NopCloser(strings.NewReader(""))}
}

func request(ctx context.Context, t *testing.T, token string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://shop.vault.azure.net/secrets/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func TestChallenges(t *testing.T) {
	cases := map[string]struct {
		reason  string
		token   string
		answers []string // "good", "bad", "ok" or "error", for each request that is sent; the last one is repeated
		sent    int
	}{
		"Good":  {"Of eight requests without a token one is sent.", "", []string{"good"}, 1},
		"Bad":   {"A challenge that is not accepted is not kept.", "", []string{"bad"}, 8},
		"Later": {"After a failure the next request is sent.", "", []string{"error", "bad", "good"}, 3},
		"Open":  {"An answer without a challenge proves nothing.", "", []string{"ok"}, 8},
		"Token": {"Requests with a token are sent.", "x", []string{"good"}, 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			sent := 0
			c := newChallenges(doerFunc(func(*http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				sent++
				switch tc.answers[min(sent, len(tc.answers))-1] {
				case "error":
					return nil, errors.New("boom")
				case "ok":
					return answerOf(http.StatusOK, ""), nil
				case "bad":
					return answerOf(http.StatusUnauthorized, "bad"), nil
				}
				return answerOf(http.StatusUnauthorized, "good"), nil
			}), func(header string) bool { return header == "good" })
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					resp, err := c.Do(request(t.Context(), t, tc.token))
					if err != nil {
						return
					}
					if closed := resp.Body.Close(); closed != nil {
						t.Error(closed)
					}
					if diff := cmp.Diff(tc.answers[len(tc.answers)-1] == "good", resp.Header.Get(challengeHeader) == "good"); diff != "" && tc.sent == 1 {
						t.Errorf("%s\nchallenge: -want, +got:\n%s", tc.reason, diff)
					}
				})
			}
			all.Wait()
			if diff := cmp.Diff(tc.sent, sent); diff != "" {
				t.Errorf("%s\nsent requests: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChallengesEnd holds a request without a token. Another one ends with its own context, and the next is sent after the first failed.
func TestChallengesEnd(t *testing.T) {
	held, ended := make(chan struct{}), make(chan struct{})
	sent := 0
	c := newChallenges(doerFunc(func(r *http.Request) (*http.Response, error) {
		if sent++; sent > 1 {
			return answerOf(http.StatusUnauthorized, "good"), nil
		}
		close(held)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}), func(string) bool { return true })
	first, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		if _, err := c.Do(request(first, t, "")); !errors.Is(err, context.Canceled) { //nolint:bodyclose // There is none.
			t.Errorf("the first request: %v", err)
		}
	}()
	<-held
	second, end := context.WithCancel(t.Context())
	end()
	if _, err := c.Do(request(second, t, "")); !errors.Is(err, context.Canceled) { //nolint:bodyclose // There is none.
		t.Errorf("A request must end with its context: %v", err)
	}
	cancel()
	<-ended
	resp, err := c.Do(request(t.Context(), t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || sent != 2 {
		t.Errorf("%d requests were sent, want 2; %v", sent, err)
	}
}
