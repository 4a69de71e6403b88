package emulator

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	pb "cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"google.golang.org/grpc"
)

// A Server is an Emulator that listens on a port.
type Server struct {
	*Emulator

	listener net.Listener
	http     *http.Server
	grpc     *grpc.Server
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
	s := &Server{Emulator: e, listener: l, grpc: grpc.NewServer(grpc.UnaryInterceptor(e.intercept)), done: make(chan struct{})}
	pb.RegisterSecretManagerServiceServer(s.grpc, e)
	pubsubpb.RegisterSubscriberServer(s.grpc, &subscriber{emulator: e})
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, Protocols: &http.Protocols{}, ErrorLog: log.New(io.Discard, "", 0)}
	s.http.Protocols.SetHTTP1(true)
	s.http.Protocols.SetHTTP2(true)
	s.http.Protocols.SetUnencryptedHTTP2(true)
	if c.tls != nil {
		t := c.tls.Clone()
		t.NextProtos = []string{"h2", "http/1.1"}
		l = tls.NewListener(l, t)
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // returns ErrServerClosed after Close; the server has no place to report another error
	}()
	return s, nil
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

// URL returns the endpoint of the service and of the logins.
func (s *Server) URL() string {
	if s.tls != nil {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// Close stops the server immediately, and closes the connections of calls in progress.
func (s *Server) Close() error {
	err := s.http.Close()
	s.grpc.Stop()
	<-s.done
	return err
}
