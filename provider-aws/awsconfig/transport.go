package awsconfig

import (
	"io"
	"net/http"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// attemptTimeout bounds one request, so that a hanging one leaves time for another.
const attemptTimeout = 15 * time.Second

// newTransport has the SDK's defaults: TLS 1.2 or later, keep-alive, the proxy of the environment.
func newTransport() *http.Transport { return tune(awshttp.NewBuildableClient().GetTransport()) }

// tune sizes a transport for one store.
func tune(t *http.Transport) *http.Transport {
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 16, 8, 64
	t.IdleConnTimeout = time.Minute
	return t
}

// newHTTPClient follows no redirect: an endpoint must not send signed requests elsewhere.
func newHTTPClient(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     limited{t},
		Timeout:       attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limited refuses answers that are too large.
type limited struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		// The SDK closes a body as soon as there is an answer. Then its WriteTo, other than its Read, returns io.EOF as an
		// error, for which net/http closes the connection under the answer.
		r = r.WithContext(r.Context())
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	resp, err := l.next.RoundTrip(r)
	if err == nil {
		resp.Body = provider.LimitAnswer(r.Context(), resp.Body, most(r))
	}
	return resp, err
}

// listings are the operations whose answers hold more than one secret of 64 KiB, or ten parameters of 8 KiB.
var listings = map[string]bool{"BatchGetSecretValue": true, "ListSecrets": true, "DescribeParameters": true}

// most returns how large the answer to a request may be. Services that speak JSON name the operation in a header.
func most(r *http.Request) int64 {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if listings[operation] {
		return provider.MaxListing
	}
	return provider.MaxAnswer
}
