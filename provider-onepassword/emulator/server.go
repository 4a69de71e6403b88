package emulator

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Server is an Emulator that listens on a port.
type Server struct {
	*Emulator

	listener net.Listener
	http     *http.Server
	done     chan struct{}
}

// Start listens on a loopback address and serves until Close. It returns an error if it cannot listen.
func Start(opts ...Option) (*Server, error) {
	c := configure(opts)
	l, err := net.Listen("tcp", c.address)
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen")
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return nil, errors.Join(errors.New("the address must be a loopback one: the emulator is no safe place for secrets"), l.Close())
	}
	e := build(c)
	s := &Server{Emulator: e, listener: l, done: make(chan struct{})}
	s.http = &http.Server{Handler: e.Handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	if c.tls != nil {
		l = tls.NewListener(l, c.tls)
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // returns ErrServerClosed after Close; the server has no place to report another error
	}()
	return s, nil
}

// URL returns the address of the server.
func (s *Server) URL() string {
	if s.tls != nil {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// Close stops the server immediately, and closes the connections of calls in progress.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}
