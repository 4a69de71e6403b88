// Package fake is a provider in memory for tests. It has a secret service whose contents, faults and call log a test
// controls, the store Kinds FakeStore and ClusterFakeStore that read it, and the generator Kinds FakeGenerator and
// ClusterFakeGenerator for which it issues credentials.
//
// Each test environment has its own Server. It has backends, by the name in a store's spec.backend, and returns the
// Kinds for the operator:
//
//	srv := fake.NewServer()
//	b := srv.Backend("prod")
//	b.Put("shop/db", []byte(`{"password":"x"}`))
//	… srv.Kinds() …
//	defer b.Inject(fake.Fault{Call: fake.CallGet, Err: provider.NewError(provider.Throttled, "slow down")})()
//
// The emulators of the provider modules have the same call log, faults and messages: they embed CallLog, Faults and Messages.
package fake

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// A Server has backends by name.
type Server struct {
	mu       sync.Mutex
	backends map[string]*Backend
}

// NewServer returns a Server without backends.
func NewServer() *Server {
	return &Server{backends: map[string]*Backend{}}
}

// Backend returns the backend of a name. If there is none, it creates one with the options; otherwise it ignores
// them.
func (s *Server) Backend(name string, opts ...Option) *Backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.backends[name]
	if !ok {
		b = New(opts...)
		s.backends[name] = b
	}
	return b
}

// Kinds returns both store Kinds of this Server.
func (s *Server) Kinds() []provider.Kind {
	return []provider.Kind{
		provider.KindOf(s.ConnectFakeStore).WithKeys(scopeOf, keysOf),
		provider.ClusterKindOf(s.ConnectClusterFakeStore).WithKeys(scopeOf, keysOf),
	}
}

// OtherKinds returns the store Kind of another module, with the backends of this Server.
func (s *Server) OtherKinds() []provider.Kind {
	return []provider.Kind{provider.KindOf(
		func(ctx context.Context, o *v1alpha1.OtherFakeStore, creds provider.Credentials) (provider.Client, error) {
			return s.connect(ctx, o, &o.Spec, creds)
		})}
}

// ConnectFakeStore returns a client for the backend that the store names.
func (s *Server) ConnectFakeStore(ctx context.Context, o *v1alpha1.FakeStore, creds provider.Credentials) (provider.Client, error) {
	return s.connect(ctx, o, &o.Spec, creds)
}

// ConnectClusterFakeStore returns a client for the backend that the store names.
func (s *Server) ConnectClusterFakeStore(ctx context.Context, o *v1alpha1.ClusterFakeStore, creds provider.Credentials) (provider.Client, error) {
	return s.connect(ctx, o, &o.Spec.FakeStoreSpec, creds)
}

func (s *Server) connect(ctx context.Context, o client.Object, spec *v1alpha1.FakeStoreSpec, creds provider.Credentials) (provider.Client, error) {
	c, err := s.dial(ctx, o, spec, creds)
	if err != nil {
		return nil, err
	}
	return newClient(c), nil
}

func (s *Server) dial(ctx context.Context, o client.Object, spec *v1alpha1.FakeStoreSpec, creds provider.Credentials) (*conn, error) {
	s.mu.Lock()
	b, ok := s.backends[spec.Backend]
	s.mu.Unlock()
	if !ok {
		return nil, provider.NewError(provider.Invalid, "spec.backend: no backend %q is set up", spec.Backend)
	}
	password, err := passwordOf(ctx, spec, creds)
	if err != nil {
		return nil, err
	}
	return b.dial(ctx, client.ObjectKeyFromObject(o).String(), password)
}

func passwordOf(ctx context.Context, spec *v1alpha1.FakeStoreSpec, creds provider.Credentials) (string, error) {
	switch {
	case spec.Auth != nil:
		p, err := creds.SecretValue(ctx, spec.Auth.SecretRef)
		return string(p), err
	case spec.Ambient:
		return ambient, creds.Ambient()
	}
	return "", nil
}
