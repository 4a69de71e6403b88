package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/provider"
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
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"kind":"Secret","apiVersion":"v1"}`))}, nil
}

// TestTokens checks when a store gets a new token.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		hang := false
		server := &answers{}
		calls, err := rest.RESTClientForConfigAndClient(&rest.Config{
			Host: "https://example.com", ContentConfig: rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
		}, &http.Client{Transport: server})
		must(t, err)
		c := &Client{calls: calls, tokens: provider.NewTokens(t.Context(), func(ctx context.Context) (provider.Token, error) {
			if hang {
				<-ctx.Done()
				return provider.Token{}, ctx.Err()
			}
			n++
			return provider.Token{Value: fmt.Sprint(n), Since: time.Now(), Expiry: time.Now().Add(tokenLifetime)}, nil
		})}
		request := func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return c.do(ctx, calls.Get().AbsPath("/"), &corev1.Secret{})
		}
		for range 2 { // One token serves several requests.
			must(t, request(time.Minute))
		}
		time.Sleep(tokenLifetime) // An old one is replaced.
		must(t, request(time.Minute))
		server.refused = "Bearer 2" // So is one that the server refuses, for the next request.
		if err := request(time.Minute); !kerrors.IsUnauthorized(err) {
			t.Errorf("a refused token: %v", err)
		}
		must(t, request(time.Minute))
		if diff := cmp.Diff([]string{"Bearer 1", "Bearer 1", "Bearer 2", "Bearer 2", "Bearer 3"}, server.seen); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		time.Sleep(tokenLifetime)
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
