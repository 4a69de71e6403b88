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

// Start listens and serves until Close. It returns the error of listening.
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
		_ = s.http.Serve(l) // ErrServerClosed after Close; no other error is left to report
	}()
	return s, nil
}

// URL is the endpoint of both services, to be used as the SDK's BaseEndpoint.
func (s *Server) URL() string {
	return "http://" + s.listener.Addr().String()
}

// Close stops the server at once. Calls that hang are cut off.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}
