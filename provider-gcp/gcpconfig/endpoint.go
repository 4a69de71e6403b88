package gcpconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

const (
	// attemptTimeout bounds one request, so that a hanging one leaves time for another.
	attemptTimeout = 15 * time.Second
	// maxLogin is far above the largest answer of a login.
	maxLogin = 1 << 20

	userAgent = "direct-secrets"
)

// logins are the URLs at which one logs in.
type logins struct{ token, exchange, impersonate string }

// google are those that Google has.
var google = logins{
	token:       "https://oauth2.googleapis.com/token",
	exchange:    "https://sts.googleapis.com/v1/token",
	impersonate: "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/",
}

// below are those of an emulator.
func below(base string) logins {
	return logins{token: base + "/token", exchange: base + "/v1/token", impersonate: base + "/v1/projects/-/serviceAccounts/"}
}

// An endpoint is where the service is.
type endpoint struct {
	host, port string
	plain      bool
	logins     logins
}

// trusted reports whether the operator's own identity may be shown there.
func (e endpoint) trusted() bool {
	return provider.Loopback(e.host) || !e.plain && strings.HasSuffix(e.host, ".googleapis.com")
}

// parseEndpoint returns the service's own address for an unset endpoint. An emulator on the
// operator's own host serves logins, too; no other address is ever sent a credential to log in with.
func parseEndpoint(spec *v1alpha1.GCPSpec, creds provider.Credentials) (endpoint, error) {
	e := endpoint{host: "secretmanager.googleapis.com", port: "443", logins: google}
	if spec.Location != "" {
		e.host = "secretmanager." + spec.Location + ".rep.googleapis.com"
	}
	if spec.Endpoint == "" {
		return e, nil
	}
	u, err := provider.ParseURL(creds, "spec.endpoint", spec.Endpoint)
	if err != nil {
		return endpoint{}, err
	}
	if u.Path != "" && u.Path != "/" {
		return endpoint{}, provider.NewError(provider.Invalid, "spec.endpoint: must have no path; write it as https://host:port")
	}
	e.host, e.port, e.plain = u.Hostname(), u.Port(), u.Scheme == "http"
	switch {
	case strings.ContainsAny(e.host, "%/\\ \t\r\n\x00"):
		return endpoint{}, provider.NewError(provider.Invalid, "spec.endpoint: its host is no name of a host")
	case e.port == "" && e.plain:
		e.port = "80"
	case e.port == "":
		e.port = "443"
	}
	if provider.Loopback(e.host) {
		e.logins = below((&url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(e.host, e.port)}).String())
	}
	return e, nil
}

// parseEmulator returns where an emulator serves logins, and where Google does if there is none. It is for
// who calls no service, so that no other address has a use.
func parseEmulator(raw string, creds provider.Credentials) (logins, error) {
	if raw == "" {
		return google, nil
	}
	e, err := parseEndpoint(&v1alpha1.GCPSpec{Endpoint: raw}, creds)
	if err == nil && !provider.Loopback(e.host) {
		err = provider.NewError(provider.Invalid, "spec.endpoint: must be an emulator's address on the operator's own host; remove it to ask Google")
	}
	return e.logins, err
}

// dial makes a connection that is opened when it is first used. It honours the proxy of the
// environment, as gRPC does.
func dial(e endpoint, roots *x509.CertPool) (*grpc.ClientConn, error) {
	security := credentials.NewTLS(tlsConfig(roots))
	if e.plain {
		security = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient("dns:///"+net.JoinHostPort(e.host, e.port),
		grpc.WithTransportCredentials(security),
		grpc.WithUserAgent(userAgent),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // spec.retrySettings say how often to retry
		grpc.WithUnaryInterceptor(limit),
		// A connection that died without a word is found before an attempt is over.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: attemptTimeout * 2 / 3, Timeout: attemptTimeout / 4}),
	)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.endpoint: is not an address that can be called")
	}
	return conn, nil
}

func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}

// newHTTPClient is for logins. It follows no redirect: what logs in is for one address alone.
func newHTTPClient(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:     tlsConfig(roots),
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     time.Minute,
		},
		Timeout:       attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limit refuses answers that are too large. A page of secrets with their annotations is the largest one.
func limit(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	most := provider.MaxAnswer
	if strings.Contains(method, "/List") {
		most = 4 * provider.MaxListing
	}
	return call(ctx, method, in, out, conn, append(opts, grpc.MaxCallRecvMsgSize(most))...)
}
