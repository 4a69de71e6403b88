package fake

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Listener serves an emulator on a loopback address. Create one with Listen.
type Listener struct {
	address, scheme string
	http            *http.Server
	done            chan struct{}
}

// Listen listens on a loopback address, and serves HTTP/1.1 and HTTP/2 until Close: with TLS if secured is set, and otherwise also HTTP/2
// without TLS. It returns an error if it cannot listen.
func Listen(address string, secured *tls.Config, h http.Handler) (*Listener, error) {
	l, err := net.Listen("tcp", address) //nolint:noctx // Listening on a loopback address does not block.
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen")
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return nil, errors.Join(errors.New("the address must be a loopback one: the emulator is no safe place for secrets"), l.Close())
	}
	s := &Listener{address: l.Addr().String(), scheme: "http", done: make(chan struct{})}
	s.http = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, Protocols: &http.Protocols{}, ErrorLog: log.New(io.Discard, "", 0)}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	if secured != nil {
		t := secured.Clone()
		t.NextProtos = []string{"h2", "http/1.1"}
		l, s.scheme = tls.NewListener(l, t), "https"
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // returns ErrServerClosed after Close; the server has no place to report another error
	}()
	return s, nil
}

// Address returns the host and the port.
func (s *Listener) Address() string { return s.address }

// URL returns the address with its scheme.
func (s *Listener) URL() string { return s.scheme + "://" + s.address }

// Close stops the server immediately, and closes the connections of calls in progress.
func (s *Listener) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}
