package eventreceiver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

const (
	// headersWithin is the timeout for the headers of a request, and readWithin that for the whole request.
	headersWithin, readWithin = 3 * time.Second, 10 * time.Second
	// idleWithin is how long a connection is kept without a request.
	idleWithin = 10 * time.Second
	// maxHeader is the maximum length of the headers in bytes.
	maxHeader = 16 << 10
	// stopWithin is how long requests are answered after the end.
	stopWithin = 2 * time.Second
)

// A Server listens for requests. It implements manager.Runnable of controller-runtime.
type Server struct {
	// Address is where it listens.
	Address string
	// CertDir is a folder with tls.crt and tls.key, which are read again when they change. It is empty for plain HTTP.
	CertDir string
	Handler http.Handler
	// Refused is called for each connection that is closed because of a limit, without a path and with a reason. It may be nil.
	Refused func(path, reason string)
}

// NeedLeaderElection returns false: standby replicas answer, too.
func (*Server) NeedLeaderElection() bool { return false }

// Start answers requests until ctx ends.
func (s *Server) Start(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return errors.Wrap(err, "cannot listen for events")
	}
	return s.serve(ctx, &listener{Listener: l, refused: s.Refused})
}

// serve answers requests until ctx ends. It closes the listener.
func (s *Server) serve(ctx context.Context, l net.Listener) error {
	if s.CertDir != "" {
		certificate, err := certwatcher.New(filepath.Join(s.CertDir, "tls.crt"), filepath.Join(s.CertDir, "tls.key"))
		if err != nil {
			return errors.Wrapf(err, "cannot load the certificate for events from %s; it must have a valid tls.crt and tls.key", s.CertDir)
		}
		go func() { _ = certificate.Start(ctx) }() // It returns no error after New has succeeded.
		l = tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.GetCertificate})
	}
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: headersWithin, ReadTimeout: readWithin, WriteTimeout: readWithin + 2*answerWithin, IdleTimeout: idleWithin,
		MaxHeaderBytes: maxHeader,
		BaseContext:    func(net.Listener) context.Context { return ctx },
	}
	stopped := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		_ = server.Shutdown(ctx) // The process ends.
	})
	defer stopped()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return errors.Wrap(err, "cannot answer requests about events")
	}
	return nil
}
