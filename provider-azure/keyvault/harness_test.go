package keyvault

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

const reader = "reader"

// A testStore is a store with the values that its auth refers to.
type testStore struct {
	*v1alpha1.AzureKeyVault
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

func (s *testStore) Ambient() error {
	if s.ambient {
		return nil
	}
	return provider.NewError(provider.Invalid, "auth: the operator's own identity is not for stores")
}

func (s *testStore) connect(ctx context.Context) (*Client, error) {
	c, err := s.Connect(ctx, s.AzureKeyVault, s)
	if err != nil {
		return nil, err
	}
	return c.(*Client), nil
}

func secretAuth(clientID string) v1alpha1.AzureAuth {
	return v1alpha1.AzureAuth{ClientSecret: &v1alpha1.ClientSecret{
		Client: v1alpha1.Client{ClientID: clientID}, ClientSecretRef: common.SecretKeySelector{Name: "azure", Key: "secret"},
	}}
}

// storeOf returns a store with a valid client secret. It waits by the clock of the emulator.
func storeOf(srv *emulator.Server) *testStore {
	one := int32(1)
	srv.SetApp(reader, emulator.App{Secrets: []string{"s3cret"}})
	s := &testStore{AzureKeyVault: &v1alpha1.AzureKeyVault{}, secrets: map[string][]byte{"secret": []byte("s3cret")}}
	s.Namespace, s.Name = "shop", "prod"
	s.sleep = func(ctx context.Context, d time.Duration) bool { srv.Advance(d); return ctx.Err() == nil }
	s.Spec.VaultURL, s.Spec.TenantID, s.Spec.Auth = srv.URL(), emulator.DefaultTenant, secretAuth(reader)
	s.Spec.RetrySettings = &common.RetrySettings{MaxRetries: &one, RetryInterval: "1ms"}
	return s
}

// elsewhere makes a store read from another URL, but log in at the emulator.
func (s *testStore) elsewhere(srv *emulator.Server, at string) *testStore {
	suffix := "vault.azure.net"
	if u, err := url.Parse(at); err == nil && !provider.Loopback(u.Hostname()) {
		suffix = "invalid" // the domain of a host that does not exist
	}
	s.Spec.VaultURL, s.Spec.Environment = at, v1alpha1.CustomEnvironment
	s.Spec.CustomCloudConfig = &v1alpha1.CustomCloudConfig{ActiveDirectoryEndpoint: srv.URL(), KeyVaultDNSSuffix: suffix}
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

// put stores a secret.
func put(t testing.TB, srv *emulator.Server, name, value string, opts ...emulator.PutOption) string {
	t.Helper()
	version, err := srv.Put(name, []byte(value), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return version
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
