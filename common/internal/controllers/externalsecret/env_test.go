package externalsecret_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

type spec = testenv.Spec

func TestMain(m *testing.M) { testenv.Main(m) }

// env is a testenv.Env with helpers for ExternalSecrets.
type env struct{ *testenv.Env }

// newEnv returns an env under the operator that serves all tests. A test that stops its operator, or sets flags, has newOwnEnv.
func newEnv(t *testing.T) *env {
	t.Helper()
	return &env{asConfigMaps(t, testenv.NewServed(t))}
}

func newOwnEnv(t *testing.T, flags ...func(*operator.Flags)) *env {
	t.Helper()
	e := newIdleEnv(t, flags...)
	e.Start()
	return e
}

func newIdleEnv(t *testing.T, flags ...func(*operator.Flags)) *env {
	t.Helper()
	return &env{asConfigMaps(t, testenv.NewIdle(t, flags...))}
}

// withDefault sets the flag --default-secret-cleanup-policy.
func withDefault(p v1alpha1.CleanupPolicy) func(*operator.Flags) {
	return func(f *operator.Flags) { f.DefaultCleanupPolicy = string(p) }
}

// into sets the target of an ExternalSecret.
func into(t v1alpha1.Target) spec {
	return func(es *v1alpha1.ExternalSecret) { es.Spec.Target = t }
}

// refresh requests a refresh and waits until it was served.
func (e *env) refresh(name string) {
	e.Helper()
	value := testenv.RandomName()
	testenv.Update(e.Client, e.Get(name), testenv.Request(value))
	e.Eventually(func() string {
		if got := e.Get(name).Status.ObservedRefreshRequest; got != value {
			return "the refresh of " + name + " was not served"
		}
		return ""
	})
}

// synced creates an ExternalSecret of that name and waits until it is in sync.
func (e *env) synced(name string, change ...spec) *v1alpha1.ExternalSecret {
	e.Helper()
	es := e.ExternalSecret(name, change...)
	e.Create(es)
	e.WantReady(name, v1alpha1.ReasonSecretSynced)
	return es
}

// plain creates a Secret as a user does, from pairs of a key and a value.
func (e *env) plain(name string, pairs ...string) *corev1.Secret {
	e.Helper()
	s := &corev1.Secret{ObjectMeta: e.Meta(name), Data: map[string][]byte{}}
	for p := range slices.Chunk(pairs, 2) {
		s.Data[p[0]] = []byte(p[1])
	}
	e.Create(s)
	return s
}

// holds returns the data of a Secret, from pairs of a key and a value.
func holds(pairs ...string) map[string]string {
	m := map[string]string{}
	for p := range slices.Chunk(pairs, 2) {
		m[p[0]] = p[1]
	}
	return m
}

// dataOf returns the data of a Secret as text; nil if it does not exist.
func (e *env) dataOf(name string) map[string]string {
	e.Helper()
	s := e.Secret(name)
	if s == nil {
		return nil
	}
	m := map[string]string{}
	for k, v := range s.Data {
		m[k] = string(v)
	}
	return m
}

// configMap creates a ConfigMap and returns its uid.
func (e *env) configMap(name string) types.UID {
	e.Helper()
	c := &corev1.ConfigMap{ObjectMeta: e.Meta(name)}
	e.Create(c)
	return c.UID
}
