package emulator

import "github.com/direct-secrets/direct-secrets/common/provider/fake"

// A Server is an Emulator that listens on a port.
type Server struct {
	*Emulator
	*fake.Listener
}

// Start listens on a loopback address and serves until Close. It returns an error if it cannot listen.
func Start(opts ...Option) (*Server, error) {
	c := configure(opts)
	e := build(c)
	l, err := fake.Listen(c.address, nil, e)
	return &Server{e, l}, err
}
