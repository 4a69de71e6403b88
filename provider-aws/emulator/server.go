package emulator

import (
	"net"
	"net/http"
	"time"
)

// A Server is an Emulator that listens on a port.
type Server struct {
	*Emulator

	listener net.Listener
	http     *http.Server
	done     chan struct{}
}

// Start listens and serves until Close. It returns an error if it cannot listen.
func Start(opts ...Option) (*Server, error) {
	c := configure(opts)
	l, err := net.Listen("tcp", c.address)
	if err != nil {
		return nil, err
	}
	e := build(c)
	s := &Server{
		Emulator: e,
		listener: l,
		http:     &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second},
		done:     make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // returns ErrServerClosed after Close; the server has no place to report another error
	}()
	return s, nil
}

// URL returns the endpoint of all services, for the SDK's BaseEndpoint.
func (s *Server) URL() string {
	return "http://" + s.listener.Addr().String()
}

// Close stops the server immediately, and closes the connections of calls in progress.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}
