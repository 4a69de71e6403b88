package emulator

import "github.com/direct-secrets/direct-secrets/common/provider/fake"

// A Server is an Emulator that listens on a port.
type Server struct {
	*Emulator
	*fake.Listener
}

// Start listens on a free port of 127.0.0.1 and serves until Close. It returns an error if it cannot listen.
func Start(opts ...Option) (*Server, error) {
	e := build(opts)
	l, err := fake.Listen("127.0.0.1:0", e.tls, e.handler())
	return &Server{e, l}, err
}
