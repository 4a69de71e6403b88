package accesstoken

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
)

const (
	account  = "deployer@test-project.iam.gserviceaccount.com"
	operator = "operator@test-project.iam.gserviceaccount.com"
	subject  = "system:serviceaccount:shop:app"
	pool     = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/clusters/providers/prod"
)

// A generator is a GCPAccessToken with the values that its auth refers to. It is its own provider.Credentials.
type generator struct {
	v1alpha1.GCPAccessToken
	Provider

	key      []byte
	lifetime time.Duration // how long the tokens of its ServiceAccount are valid
	ambient  bool
}

func (g *generator) SecretValue(context.Context, common.SecretKeySelector) ([]byte, error) {
	if len(g.key) == 0 {
		return nil, provider.NewError(provider.Invalid, "Secret shop/gcp does not exist")
	}
	return g.key, nil
}

func (g *generator) ConfigMapValue(context.Context, common.ConfigMapKeySelector) ([]byte, error) {
	return nil, errors.New("no ConfigMap")
}

func (g *generator) ServiceAccountToken(ctx context.Context, _ common.ServiceAccountSelector, audiences ...string) (string, error) {
	return fake.NewToken("https://kubernetes", subject, audiences[0], time.Now().Add(g.lifetime)), ctx.Err()
}

func (g *generator) Ambient() error {
	if g.ambient {
		return nil
	}
	return provider.NewError(provider.Invalid, "is not set")
}

func (g *generator) connect(t testing.TB) (*Generator, error) {
	t.Helper()
	c, err := g.Connect(t.Context(), &g.GCPAccessToken, g)
	if err != nil {
		return nil, err
	}
	client, ok := c.(*Generator)
	if !ok {
		t.Fatalf("the client is a %T", c)
	}
	t.Cleanup(func() { _ = client.Close() }) // It never returns an error.
	return client, nil
}

// client connects a generator that logs in with a valid key, unless change alters it.
func client(t testing.TB, srv *emulator.Server, change ...func(*generator)) *Generator {
	t.Helper()
	g := newGenerator(srv)
	for _, f := range change {
		f(g)
	}
	c, err := g.connect(t)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newGenerator(srv *emulator.Server) *generator {
	one := int32(1)
	g := &generator{key: srv.Key(account), lifetime: time.Hour}
	g.Namespace, g.Name = "shop", "registry"
	g.Spec.Endpoint = srv.URL()
	g.Spec.RetrySettings = &common.RetrySettings{MaxRetries: &one, RetryInterval: "1ms"}
	g.Spec.Auth = &v1alpha1.GCPAuth{SecretRef: &v1alpha1.GCPSecretRef{
		SecretAccessKeySecretRef: common.SecretKeySelector{Name: "gcp", Key: "key.json"},
	}}
	return g
}

// byWorkload makes a generator log in with a ServiceAccount and, if email is set, impersonate a service
// account.
func byWorkload(email string) func(*generator) {
	return func(g *generator) {
		g.Spec.Auth = &v1alpha1.GCPAuth{WorkloadIdentity: &v1alpha1.WorkloadIdentity{
			ServiceAccountRef: &common.ServiceAccountSelector{Name: "app"}, Audience: pool, ServiceAccountEmail: email,
		}}
	}
}

// byOperator makes a generator use the operator's own identity.
func byOperator(g *generator) { g.Spec.Auth, g.ambient = nil, true }

// operatorKey sets the operator's identity by a file.
func operatorKey(t testing.TB, key []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
}

// operatorMachine sets the operator's identity to that of its machine.
func operatorMachine(t testing.TB, srv *emulator.Server) {
	t.Helper()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir()) // gcloud stores its credentials file there
	t.Setenv("GCE_METADATA_HOST", srv.URL()[len("http://"):])
}

// start starts an emulator with all identities of the tests.
func start(t testing.TB, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(append([]emulator.Option{emulator.WithMachine(operator)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // The tests do not depend on a clean stop.
	srv.AddServiceAccount(account, subject)
	srv.AddProvider(emulator.Provider{Audience: pool, Subjects: []string{subject}})
	return srv
}

// soon returns a context with a deadline, for calls that must not hang.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
