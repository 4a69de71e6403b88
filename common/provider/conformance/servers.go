package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const loopback = "127.0.0.1"

// A server takes the place of the provider's server. It supports HTTP/1 and HTTP/2, also without TLS, so that it
// works for every provider.
type server struct {
	URL string
	// requests counts the received requests.
	requests atomic.Int64

	http *http.Server
}

// serve starts a server on loopback, with TLS if there is a certificate.
func serve(h http.Handler, certificate *tls.Certificate) (*server, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen")
	}
	s := &server{URL: "http://" + l.Addr().String()}
	s.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			h.ServeHTTP(w, r)
		}),
		Protocols:         &http.Protocols{},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // Clients close connections on purpose.
	}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	if certificate == nil {
		go func() { _ = s.http.Serve(l) }() // Serve always returns an error.
		return s, nil
	}
	s.URL = "https://" + l.Addr().String()
	s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}}
	go func() { _ = s.http.ServeTLS(l, "", "") }() // ServeTLS always returns an error.
	return s, nil
}

func (s *server) close() error { return s.http.Close() }

// certificate returns a self-signed certificate for the server.
func certificate(change func(*x509.Certificate)) (*tls.Certificate, error) {
	c := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "conformance"},
		NotBefore:             time.Now().Add(-2 * time.Hour),
		NotAfter:              time.Now().Add(2 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.ParseIP(loopback)},
		BasicConstraintsValid: true,
	}
	change(c)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// forward returns a handler that forwards requests to the provider's server, and returns its answers after change. It
// keeps the called host, because some clients sign it.
func forward(to string, change func(*http.Response) error) (http.Handler, error) {
	u, err := url.Parse(to)
	if err != nil || to == "" {
		return nil, errors.New("harness: Server is missing or not a URL")
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Host = r.In.Host
		},
		Transport:      newProtocols(),
		ModifyResponse: change,
		ErrorLog:       log.New(io.Discard, "", 0), // A request that cannot be forwarded gets a 502.
	}, nil
}

// protocols forwards a request with the HTTP version of the request: gRPC needs HTTP/2.
type protocols struct{ first, second http.RoundTripper }

func newProtocols() protocols {
	return protocols{newTransport((*http.Protocols).SetHTTP1), newTransport((*http.Protocols).SetUnencryptedHTTP2)}
}

// idle is how long an unused connection is kept. Closing each connection after its request would lose some answers:
// net/http closes a connection of HTTP/2 as soon as it has no request, and the next request might already use it.
const idle = time.Second

func newTransport(setProtocols func(*http.Protocols, bool)) *http.Transport {
	t := &http.Transport{DisableCompression: true, IdleConnTimeout: idle, Protocols: &http.Protocols{}}
	setProtocols(t.Protocols, true)
	return t
}

// RoundTrip implements http.RoundTripper.
func (p protocols) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.ProtoMajor == 2 {
		return p.second.RoundTrip(r)
	}
	return p.first.RoundTrip(r)
}

// silent accepts connections, and never sends anything on them.
func silent() (address string, end func(), err error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return "", nil, errors.Wrap(err, "cannot listen")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			open = append(open, c)
		}
		for _, c := range open {
			_ = c.Close() // The caller might have closed it.
		}
	}()
	return "http://" + l.Addr().String(), func() { _ = l.Close(); <-done }, nil
}

// closedPort returns the address of a port without a listener.
func closedPort() (string, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return "", errors.Wrap(err, "cannot listen")
	}
	return "http://" + l.Addr().String(), l.Close()
}
