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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
)

const (
	// attemptTimeout limits one request, so that a retry is possible after a hanging one.
	attemptTimeout = 15 * time.Second
	// maxLogin is the maximum size of the answer to a login, far above the largest real one, in bytes.
	maxLogin = 1 << 20

	// Maximum sizes of answers, in bytes. maxPage is for a page of Google's own servers.
	//limit:reads Page of Google's own servers | unit=bytes | `Unavailable`; the answer is not read.
	maxPage = 4 * provider.MaxListing
	// maxOtherPage is for a page of another server.
	//limit:memory List of a server for Google Secret Manager that is not Google's own | unit=bytes | It counts before it arrives. A larger one is `Unavailable`.
	maxOtherPage = 1 << 20
	// maxOtherValue is for a value of another server. The largest value of Google has 64 KiB.
	//limit:memory Value of such a server | unit=bytes | It counts before it arrives. A larger one is `Unavailable`.
	maxOtherValue = 96 << 10

	userAgent = "direct-secrets"
)

// A Service is the first part of the host name of a service.
type Service string

// These are the services.
const (
	SecretManager Service = "secretmanager"
	PubSub        Service = "pubsub"
)

// logins are the URLs for logins.
type logins struct{ token, exchange, impersonate string }

// google are Google's URLs for logins.
var google = logins{
	token:       "https://oauth2.googleapis.com/token",
	exchange:    "https://sts.googleapis.com/v1/token",
	impersonate: "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/",
}

// below returns the URLs of an emulator.
func below(base string) logins {
	return logins{token: base + "/token", exchange: base + "/v1/token", impersonate: base + "/v1/projects/-/serviceAccounts/"}
}

// An endpoint is the address of the service.
type endpoint struct {
	host, port string
	plain      bool
	logins     logins
}

// trusted reports whether the operator's own identity can be used there.
func (e endpoint) trusted() bool {
	return provider.Loopback(e.host) || !e.plain && strings.HasSuffix(e.host, ".googleapis.com")
}

// parseEndpoint returns the service's own address for an unset endpoint. An emulator on the operator's own host
// serves logins, too. Login credentials are sent only to Google's addresses and to an emulator.
func parseEndpoint(service Service, spec *v1alpha1.GCPSpec, creds provider.Credentials) (endpoint, error) {
	e := endpoint{host: string(service) + ".googleapis.com", port: "443", logins: google}
	if spec.Location != "" {
		e.host = string(service) + "." + spec.Location + ".rep.googleapis.com"
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
		return endpoint{}, provider.NewError(provider.Invalid, "spec.endpoint: its host is not a valid host name")
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

// parseEmulator returns the login URLs of an emulator, or Google's if raw is empty. It is for clients that only
// log in, so it rejects any other address.
func parseEmulator(raw string, creds provider.Credentials) (logins, error) {
	if raw == "" {
		return google, nil
	}
	e, err := parseEndpoint("", &v1alpha1.GCPSpec{Endpoint: raw}, creds)
	if err == nil && !provider.Loopback(e.host) {
		err = provider.NewError(provider.Invalid, "spec.endpoint: must be the address of an emulator on the operator's own host; remove it to use Google")
	}
	return e.logins, err
}

// dial returns a connection that opens when it is first used. It uses the proxy of the environment, as gRPC
// does.
func dial(e endpoint, roots *x509.CertPool) (*grpc.ClientConn, error) {
	security := credentials.NewTLS(tlsConfig(roots))
	if e.plain {
		security = insecure.NewCredentials()
	}
	conn, err := grpc.NewClient("dns:///"+net.JoinHostPort(e.host, e.port),
		grpc.WithTransportCredentials(security),
		grpc.WithUserAgent(userAgent),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // spec.retrySettings control the retries
		grpc.WithChainUnaryInterceptor(count, limit(e.trusted())),
		// Keepalive detects a dead connection before the timeout of an attempt.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: attemptTimeout * 2 / 3, Timeout: attemptTimeout / 4}),
	)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec.endpoint: is not a valid address")
	}
	return conn, nil
}

func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
}

// newHTTPClient returns a client for logins. It follows no redirect, because a login must reach one address
// only.
func newHTTPClient(roots *x509.CertPool) *http.Client {
	t := provider.NewTransport(tlsConfig(roots))
	t.MaxIdleConnsPerHost = 1
	c := provider.NewHTTPClient(t, func(*http.Request) string { return "login" }, func(*http.Request) bool { return false })
	c.Timeout = attemptTimeout
	return c
}

// limit rejects answers that are too large. The largest valid ones are a page of secrets with their annotations, and messages of
// 10 MB. gRPC decodes an answer before anything else sees it, so the answers of a server that may be hostile count before they arrive.
func limit(trusted bool) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		lists, most := strings.Contains(method, "/List") || strings.HasSuffix(method, "/Pull"), provider.MaxAnswer
		switch {
		case lists && trusted:
			most = maxPage
		case lists:
			most = maxOtherPage
		case !trusted:
			most = maxOtherValue
		}
		if !trusted {
			release, err := provider.Reserve(ctx, int64(most))
			if err != nil {
				return err
			}
			defer release()
		}
		return call(ctx, method, in, out, conn, append(opts, grpc.MaxCallRecvMsgSize(most))...)
	}
}

// count counts each attempt. The metric's label values are limited: method is a constant of Google's generated
// client, and the codes are those of gRPC.
func count(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	end, err := provider.BeginCall(ctx)
	if err != nil {
		return err
	}
	defer end()
	done := provider.APICall(ctx, method[strings.LastIndex(method, "/")+1:])
	err = call(ctx, method, in, out, conn, opts...)
	code := status.Code(err)
	if code > codes.Unauthenticated {
		code = codes.Unknown
	}
	done(code.String())
	return err
}
