package client

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answers answers each request with the status for its token, and records the tokens.
type answers struct {
	refused string
	seen    []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	token := r.Header.Get("Authorization")
	a.seen = append(a.seen, token)
	status := http.StatusOK
	if token == a.refused {
		status = http.StatusUnauthorized
	}
	return &http.Response{StatusCode: status, Body: http.NoBody}, nil
}

// TestTokens checks when a store gets a new token.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		hang := false
		server := &answers{}
		l := &login{next: server, lock: make(chan struct{}, 1), token: func(ctx context.Context) (string, error) {
			if hang {
				<-ctx.Done()
				return "", ctx.Err()
			}
			n++
			return fmt.Sprint(n), nil
		}}
		request := func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := l.RoundTrip(r)
			if err == nil {
				err = resp.Body.Close()
			}
			return err
		}
		for range 2 { // One token serves several requests.
			must(t, request(time.Minute))
		}
		time.Sleep(tokenAge + time.Second) // An old one is replaced.
		must(t, request(time.Minute))
		server.refused = "Bearer 2" // So is one that the server refuses, for the next request.
		must(t, request(time.Minute))
		must(t, request(time.Minute))
		if diff := cmp.Diff([]string{"Bearer 1", "Bearer 1", "Bearer 2", "Bearer 2", "Bearer 3"}, server.seen); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		time.Sleep(tokenAge + time.Second)
		hang = true
		go func() { _ = request(time.Hour) }()
		synctest.Wait()
		start := time.Now()
		if err := request(time.Second); err == nil || time.Since(start) != time.Second {
			t.Errorf("a request waits %s for the token of another one: %v", time.Since(start), err)
		}
		time.Sleep(2 * time.Hour)
	})
}
