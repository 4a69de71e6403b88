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
	// attemptTimeout bounds one request, so that a hanging one leaves time for another.
	attemptTimeout = 15 * time.Second
	// onceTimeout bounds a request that must not be made twice: by default Vault itself gives up then.
	onceTimeout = 90 * time.Second
)

func newTransport(c *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       c,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		MaxIdleConnsPerHost:   8,
		MaxConnsPerHost:       64,
		IdleConnTimeout:       time.Minute,
	}
}

// newHTTPClient follows no redirect: the token is for the server that the store names.
func newHTTPClient(t http.RoundTripper, timeout time.Duration) *http.Client {
	return &http.Client{
		Transport:     attentive{t},
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// attentive notes what the server says last, and refuses answers that are too large.
type attentive struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a attentive) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if s, ok := r.Context().Value(said{}).(*answered); ok && resp.StatusCode >= http.StatusMultipleChoices {
		s.last = &Refusal{Status: resp.StatusCode, retryAfter: provider.RetryAfterHeader(resp.Header)}
	}
	most := int64(provider.MaxAnswer)
	if r.URL.Query().Has("list") { // A folder can have some 100,000 names, and Vault has no pages.
		most = provider.MaxListing
	}
	resp.Body = provider.LimitAnswer(r.Context(), resp.Body, most)
	return resp, nil
}

type said struct{}

// answered is what the server said last within one call.
type answered struct{ last error }

// listen returns a context for one request and its retries, which happen one after another.
func listen(ctx context.Context) (context.Context, *answered) {
	s := &answered{}
	return context.WithValue(ctx, said{}, s), s
}

// or returns err, unless that is only the end of the call's context after the server refused: a
// caller must learn that it was throttled, not that time ran out.
func (s *answered) or(err error) error {
	if s.last == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return s.last
}

// retry has the SDK try again as a store asks for.
func retry(c *api.Config, r provider.Retries, worth func(context.Context, *http.Response, error) (bool, error)) {
	c.MaxRetries = r.Max
	c.CheckRetry = worth
	c.Backoff = func(_, _ time.Duration, attempt int, _ *http.Response) time.Duration {
		return r.Wait(attempt)
	}
	// The SDK would otherwise put its own here; Backoff does not use them.
	c.MinRetryWait, c.MaxRetryWait = time.Nanosecond, time.Nanosecond
}

// worthRetrying reports whether to send a request again at once. Where Vault says how long to wait
// that is left to the caller.
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

// surelyNothing is worthRetrying for requests that make something: it says so only where the server did
// not look at the request. Whatever else fails may have made what nobody then knows.
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

// unrepeated is a transport that uses each connection once. One that is used again may turn out to be
// closed, and net/http then sends a GET a second time, though the server may have got the first.
func unrepeated(t *http.Transport) *http.Transport {
	t = t.Clone()
	t.DisableKeepAlives = true
	return t
}
