package awsconfig

import (
	"io"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

const (
	// attemptTimeout bounds one request, so that a hanging one leaves time for another.
	attemptTimeout = 15 * time.Second
	// maxAnswer is far above the largest answer of AWS, which is a batch of twenty secrets.
	maxAnswer = 16 << 20
)

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

// limited cuts answers that are too large; they then cannot be decoded.
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
		resp.Body = body{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

type body struct {
	io.Reader
	io.Closer
}
