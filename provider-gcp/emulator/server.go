package emulator

import (
	"net/http"
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"google.golang.org/grpc"

	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// A Server is an Emulator that listens on a port.
type Server struct {
	*Emulator
	*fake.Listener

	grpc *grpc.Server
}

// Start listens on a loopback address and serves until Close. It returns an error if it cannot listen.
func Start(opts ...Option) (*Server, error) {
	c := configure(opts)
	e := build(c)
	s := &Server{Emulator: e, grpc: grpc.NewServer(grpc.UnaryInterceptor(e.intercept))}
	pb.RegisterSecretManagerServiceServer(s.grpc, e)
	pubsubpb.RegisterSubscriberServer(s.grpc, &subscriber{emulator: e})
	var err error
	s.Listener, err = fake.Listen("127.0.0.1:0", c.tls, s.handler())
	return s, err
}

// handler separates gRPC calls from logins.
func (s *Server) handler() http.Handler {
	logins := s.logins()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			s.grpc.ServeHTTP(w, r)
			return
		}
		logins.ServeHTTP(w, r)
	})
}

// Close stops the server immediately, and closes the connections of calls in progress.
func (s *Server) Close() error {
	err := s.Listener.Close()
	s.grpc.Stop()
	return err
}
