package provider

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/direct-secrets/direct-secrets/common/internal/quota"
)

// NewTransport returns the transport of one store, for which c has the certificates.
func NewTransport(c *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       c,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
		// An answer waits in the network until it is read, not in memory.
		HTTP2:               &http.HTTP2Config{MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: quota.Uncounted},
		MaxIdleConns:        16,
		MaxIdleConnsPerHost: 8,
		MaxConnsPerHost:     64,
		IdleConnTimeout:     time.Minute,
	}
}

// NewHTTPClient returns a client that counts requests as CountCalls does, limits answers to MaxListing or MaxAnswer, and follows no
// redirect, because credentials are only for the server of the store.
func NewHTTPClient(t http.RoundTripper, operation func(*http.Request) string, isListing func(*http.Request) bool) *http.Client {
	return &http.Client{
		Transport:     CountCalls(limitedAnswers{t, isListing}, operation),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limitedAnswers is a transport that limits each answer.
type limitedAnswers struct {
	next      http.RoundTripper
	isListing func(*http.Request) bool
}

// RoundTrip implements http.RoundTripper.
func (l limitedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	end, err := quota.Of(r.Context()).Call(r.Context())
	if err != nil {
		return nil, ErrBusy
	}
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		end(0)
		return nil, err
	}
	most := int64(MaxAnswer)
	if l.isListing(r) {
		most = MaxListing
	}
	resp.Body = limitAnswer(r.Context(), resp.Body, most, end)
	return resp, nil
}

// Address returns the host, port and path of a URL in one form, for an Identity.
func Address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	address := url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(strings.ToLower(u.Hostname()), port), Path: strings.Trim(u.Path, "/")}
	return address.String()
}
