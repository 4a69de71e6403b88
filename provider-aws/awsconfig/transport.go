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
	t.HTTP2 = provider.NewTransport(nil).HTTP2 // An answer waits in the network until it is read, not in memory.
	return t
}

// newHTTPClient returns a client with a limit for each request.
func newHTTPClient(t *http.Transport) *http.Client {
	c := provider.NewHTTPClient(readBody{t}, operationOf, isListing)
	c.Timeout = attemptTimeout
	return c
}

// readBody is a transport that only reads the body of a request. The SDK closes a body as soon as there is an answer. Its WriteTo
// (unlike its Read) then returns io.EOF as an error, and net/http closes the connection while the answer is read.
type readBody struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b readBody) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r = r.WithContext(r.Context())
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return b.next.RoundTrip(r)
}

// listings are the operations whose answer can hold more than one secret of 64 KiB, more than ten parameters of 8 KiB, or more than
// one message of 1 MiB.
var listings = map[string]bool{"BatchGetSecretValue": true, "ListSecrets": true, "DescribeParameters": true, "ReceiveMessage": true}

// isListing reports whether a request is one of listings. JSON services name the operation in a header.
func isListing(r *http.Request) bool {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return listings[operation]
}

// operationOf returns the SDK's name of the operation that a request calls.
func operationOf(r *http.Request) string { return awsmiddleware.GetOperationName(r.Context()) }
