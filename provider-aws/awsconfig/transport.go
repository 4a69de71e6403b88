package awsconfig

import (
	"io"
	"net/http"
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// attemptTimeout limits one request, so that a retry is possible after a hanging one.
const attemptTimeout = 15 * time.Second

// newTransport has the SDK's defaults: TLS 1.2 or later, keep-alive, the proxy of the environment.
func newTransport() *http.Transport { return tune(awshttp.NewBuildableClient().GetTransport()) }

// tune adapts a transport to the calls of one store.
func tune(t *http.Transport) *http.Transport {
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = 16, 8, 64
	t.IdleConnTimeout = time.Minute
	return t
}

// newHTTPClient follows no redirect: an endpoint must not send signed requests elsewhere.
func newHTTPClient(t *http.Transport) *http.Client {
	return &http.Client{
		Transport:     provider.CountCalls(limited{t}, operationOf),
		Timeout:       attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limited is a transport that rejects answers that are too large.
type limited struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		// The SDK closes a body as soon as there is an answer. Its WriteTo (unlike its Read) then returns
		// io.EOF as an error, and net/http closes the connection while the answer is read.
		r = r.WithContext(r.Context())
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	resp, err := l.next.RoundTrip(r)
	if err == nil {
		resp.Body = provider.LimitAnswer(r.Context(), resp.Body, most(r))
	}
	return resp, err
}

// listings are the operations whose answer can hold more than one secret of 64 KiB, or more than ten parameters
// of 8 KiB.
var listings = map[string]bool{"BatchGetSecretValue": true, "ListSecrets": true, "DescribeParameters": true}

// most returns the maximum size of the answer to a request, in bytes. JSON services name the operation in a
// header.
func most(r *http.Request) int64 {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if listings[operation] {
		return provider.MaxListing
	}
	return provider.MaxAnswer
}

// operationOf returns the SDK's name of the operation that a request calls.
func operationOf(r *http.Request) string { return awsmiddleware.GetOperationName(r.Context()) }
