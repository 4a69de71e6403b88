package secretmanager

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

const reader = "reader@test-project.iam.gserviceaccount.com"

// A testStore is a store with the values that its auth refers to.
type testStore struct {
	*v1alpha1.GCPSecretManager
	Provider

	secrets map[string][]byte // by key; the Secrets' names are ignored
	token   func(audiences []string) (string, error)
	ambient bool
}

func (s *testStore) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	if v := s.secrets[sel.Key]; len(v) > 0 {
		return v, nil
	}
	return nil, provider.NewError(provider.Invalid, "auth: Secret shop/%s has no value under key %q; add it or correct the reference", sel.Name, sel.Key)
}

func (s *testStore) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errors.New("no ConfigMap")
}

func (s *testStore) ServiceAccountToken(_ context.Context, _ common.ServiceAccountSelector, audiences ...string) (string, error) {
	if s.token == nil {
		return "", errors.New("no token")
	}
	return s.token(audiences)
}

func (s *testStore) OwnToken(_ context.Context, audience string) (string, error) {
	return s.token([]string{audience})
}

func (s *testStore) Ambient() error {
	if s.ambient {
		return nil
	}
	return provider.NewError(provider.Invalid, "auth is not set")
}

func (s *testStore) connect(ctx context.Context) (*Client, error) {
	c, err := s.Connect(ctx, s.GCPSecretManager, s)
	if err != nil {
		return nil, err
	}
	return c.(*Client), nil
}

// storeOf returns a store with a valid key.
func storeOf(srv *emulator.Server) *testStore {
	one := int32(1)
	s := &testStore{GCPSecretManager: &v1alpha1.GCPSecretManager{}, secrets: map[string][]byte{"key.json": srv.Key(reader)}}
	s.Namespace, s.Name = "shop", "prod"
	s.Spec.ProjectID, s.Spec.Endpoint = emulator.DefaultProject, srv.URL()
	s.Spec.RetrySettings = &common.RetrySettings{MaxRetries: &one, RetryInterval: "1ms"}
	s.Spec.Auth = &v1alpha1.GCPAuth{SecretRef: &v1alpha1.GCPSecretRef{
		SecretAccessKeySecretRef: common.SecretKeySelector{Name: "gcp", Key: "key.json"},
	}}
	return s
}

func start(t testing.TB, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

// readFrom connects to a store that logs in normally, but reads from a server at another URL.
func readFrom(ctx context.Context, s *testStore, url string) (*Client, error) {
	good, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	// This login needs no key for the other endpoint. The test does not use it.
	s.Spec.Auth = &v1alpha1.GCPAuth{WorkloadIdentity: &v1alpha1.WorkloadIdentity{ServiceAccountRef: &common.ServiceAccountSelector{Name: "app"}, Audience: "identitynamespace:pool:provider"}}
	s.Spec.Endpoint = url
	other, err := s.connect(ctx)
	if err != nil {
		return nil, errors.Join(err, good.Close())
	}
	unused := good.config.Conn
	good.api, good.config.Conn = other.api, other.config.Conn
	return good, unused.Close()
}

// client connects to a store, which change can alter first.
func client(t testing.TB, srv *emulator.Server, change ...func(*testStore)) *Client {
	t.Helper()
	s := storeOf(srv)
	for _, f := range change {
		f(s)
	}
	c, err := s.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// soon returns a context with a deadline, for calls that must not hang.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
