package session

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/hashicorp/vault/api"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// attemptTimeout limits one request, so that a retry is possible after a hanging one.
	attemptTimeout = 15 * time.Second
	// onceTimeout limits a request that must not be repeated. It is Vault's own default limit for a request.
	onceTimeout = 90 * time.Second
)

// newHTTPClient returns a client with a limit for each request.
func newHTTPClient(t http.RoundTripper, timeout time.Duration) *http.Client {
	c := provider.NewHTTPClient(attentive{t}, operationOf, func(r *http.Request) bool {
		return r.URL.Query().Has("list") // A folder can have about 100,000 names, and Vault has no pages.
	})
	c.Timeout = timeout
	return c
}

// attentive is a transport that records the server's last error.
type attentive struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a attentive) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(r)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		provider.SetLastError(r.Context(), &Refusal{Status: resp.StatusCode, retryAfter: provider.RetryAfterHeader(resp.Header)})
	}
	return resp, err
}

// retry sets the retries that a store asks for.
func retry(c *api.Config, r provider.Retries, worth func(context.Context, *http.Response, error) (bool, error)) {
	c.MaxRetries = r.Max
	c.CheckRetry = worth
	c.Backoff = func(_, _ time.Duration, attempt int, _ *http.Response) time.Duration {
		return r.Wait(attempt)
	}
	// The SDK would otherwise set its own values; Backoff does not use them.
	c.MinRetryWait, c.MaxRetryWait = time.Nanosecond, time.Nanosecond
}

// worthRetrying reports whether to repeat a request without the caller. If Vault asks to wait, that is up to
// the caller.
func worthRetrying(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	if err != nil {
		return !errors.As(err, &certificate) && !errors.As(err, &record), nil
	}
	if provider.RetryAfterHeader(resp.Header) > 0 {
		return false, nil
	}
	switch s := resp.StatusCode; s {
	case http.StatusNotImplemented:
		return false, nil
	case http.StatusPreconditionFailed, http.StatusTooManyRequests, statusRecoveryStandby, statusStandby:
		return true, nil
	default:
		return s >= http.StatusInternalServerError, nil
	}
}

// surelyNothing is worthRetrying for requests that create something. It allows a retry only if the server has
// not handled the request. After any other failure there may be unknown credentials.
func surelyNothing(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if again, stop := worthRetrying(ctx, resp, err); !again || stop != nil {
		return false, stop
	}
	if err != nil {
		var op *net.OpError
		return errors.As(err, &op) && op.Op == "dial", nil
	}
	switch resp.StatusCode {
	case http.StatusPreconditionFailed, http.StatusTooManyRequests, statusRecoveryStandby, statusStandby:
		return true, nil
	}
	return false, nil
}

// unrepeated returns a transport that uses each connection once. A reused connection can turn out to be closed.
// net/http then sends a GET again, although the server may have received the first one.
func unrepeated(t *http.Transport) *http.Transport {
	t = t.Clone()
	t.DisableKeepAlives = true
	return t
}
