package operator_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/manifests"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

var (
	config  *rest.Config
	api     client.Client
	cluster *controlplane.ControlPlane
)

func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, fakev1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		ctrl.SetLogger(logr.Discard())
		var err error
		cluster, config = c, c.Config()
		api, err = client.New(config, client.Options{Scheme: scheme})
		return err
	}, controlplane.WithCRDs(controlplane.Manifests(fake.CRDs, manifests.CRDs)...), controlplane.WithAuditLog())
}

// env is a namespace with an operator and a provider of its own, so that tests run in parallel.
type env struct {
	*testing.T
	ctx     context.Context
	ns      string
	server  *fake.Server
	backend *fake.Backend
	flags   []func(*operator.Flags)
	config  *rest.Config
	stop    func()
}

// newEnv makes a namespace with a store "store" over an empty backend, and starts an operator.
func newEnv(t *testing.T, flags ...func(*operator.Flags)) *env {
	t.Helper()
	e := newIdleEnv(t, flags...)
	e.start()
	return e
}

// newIdleEnv is newEnv without the operator.
func newIdleEnv(t *testing.T, flags ...func(*operator.Flags)) *env {
	t.Helper()
	t.Parallel()
	return newSerialEnv(t, flags...)
}

// newSerialEnv is newIdleEnv for tests that see to it by themselves that they run side by side.
func newSerialEnv(t *testing.T, flags ...func(*operator.Flags)) *env {
	t.Helper()
	e := &env{T: t, ctx: t.Context(), ns: "t-" + randomName(), server: fake.NewServer(), flags: flags, config: config, stop: func() {}}
	e.backend = e.server.Backend("main")
	e.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}})
	e.create(e.store("store", "main"))
	t.Cleanup(func() { e.stop() })
	return e
}

func randomName() string {
	b := make([]byte, 5)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func (e *env) store(name, backend string, change ...func(*fakev1.FakeStore)) *fakev1.FakeStore {
	s := &fakev1.FakeStore{ObjectMeta: e.meta(name), Spec: fakev1.FakeStoreSpec{Backend: backend}}
	for _, f := range change {
		f(s)
	}
	return s
}

func (e *env) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.ns, Name: name}
}

// start runs an operator that serves this namespace until stop is called.
func (e *env) start() {
	e.Helper()
	opts := []operator.Option{
		operator.WithScheme(fakev1.AddToScheme),
		operator.WithConfig(e.config),
		operator.WithFlags(func(f *operator.Flags) {
			f.MetricsAddress, f.ProbeAddress, f.LeaderElect = "0", "0", false
			f.Namespaces = e.ns
			f.LogFormat = "text"
			f.ProviderTimeout = 5 * time.Second
			for _, set := range e.flags {
				set(f)
			}
		}),
	}
	opts = append(opts, e.kinds()...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.New("provider-fake", fakev1.Group, opts...).Run(ctx) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.Errorf("operator: %v", err)
		}
	})
}

// kinds are those that the server serves, stores and generators.
func (e *env) kinds() []operator.Option {
	return withKinds(slices.Concat(e.server.Kinds(), e.server.GeneratorKinds())...)
}

func (e *env) create(o client.Object) {
	e.Helper()
	if err := api.Create(e.ctx, o); err != nil {
		e.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// externalSecret returns an object that fills one key from the property-less secret of the same
// name.
func (e *env) externalSecret(name string, change ...func(*v1alpha1.ExternalSecret)) *v1alpha1.ExternalSecret {
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: e.meta(name),
		Spec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"},
			Data:     []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: name}}},
		},
	}
	for _, f := range change {
		f(es)
	}
	return es
}

// update changes an object live, again if somebody else did meanwhile.
func update[T client.Object](e *env, o T, change func(T)) T {
	e.Helper()
	for {
		if err := api.Get(e.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			e.Fatalf("get %s: %v", o.GetName(), err)
		}
		change(o)
		err := api.Update(e.ctx, o)
		if err == nil {
			return o
		}
		if !kerrors.IsConflict(err) {
			e.Fatalf("update %s: %v", o.GetName(), err)
		}
	}
}

// eventually waits until f returns an empty string, which else says what is still missing.
func (e *env) eventually(f func() string) {
	e.Helper()
	controlplane.Eventually(e, f)
}

// secret returns a Secret; nil if it does not exist.
func (e *env) secret(name string) *corev1.Secret {
	e.Helper()
	s := &corev1.Secret{}
	err := api.Get(e.ctx, types.NamespacedName{Namespace: e.ns, Name: name}, s)
	if kerrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		e.Fatalf("get Secret %s: %v", name, err)
	}
	return s
}

// wantSecret waits until a Secret holds a value under a key.
func (e *env) wantSecret(name, key, value string) *corev1.Secret {
	e.Helper()
	var s *corev1.Secret
	e.eventually(func() string {
		if s = e.secret(name); s == nil {
			return "Secret " + name + " does not exist"
		}
		if got := string(s.Data[key]); got != value {
			return "Secret " + name + " key " + key + " is " + got + ", want " + value
		}
		return ""
	})
	return s
}

// get reads an ExternalSecret live.
func (e *env) get(name string) *v1alpha1.ExternalSecret {
	e.Helper()
	es := &v1alpha1.ExternalSecret{}
	if err := api.Get(e.ctx, types.NamespacedName{Namespace: e.ns, Name: name}, es); err != nil {
		e.Fatalf("get ExternalSecret %s: %v", name, err)
	}
	return es
}

// wantReady waits until the Ready condition of an ExternalSecret has a reason and describes its
// present generation.
func (e *env) wantReady(name, reason string) metav1.Condition {
	e.Helper()
	var got metav1.Condition
	e.eventually(func() string {
		es := e.get(name)
		c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil {
			return "ExternalSecret " + name + " has no Ready condition"
		}
		if c.Reason != reason || c.ObservedGeneration != es.Generation {
			return "ExternalSecret " + name + " is " + c.Reason + ": " + c.Message + ", want " + reason
		}
		got = *c
		return ""
	})
	return got
}

type corev1Secret = corev1.Secret

// secretWith creates the Secret "credentials" with one key.
func (e *env) secretWith(key, value string, change ...func(*corev1.Secret)) *corev1.Secret {
	e.Helper()
	s := &corev1.Secret{ObjectMeta: e.meta("credentials"), Data: map[string][]byte{key: []byte(value)}}
	for _, f := range change {
		f(s)
	}
	e.create(s)
	return s
}

// configMap creates a ConfigMap and returns its uid.
func (e *env) configMap(name string) types.UID {
	e.Helper()
	c := &corev1.ConfigMap{ObjectMeta: e.meta(name)}
	e.create(c)
	return c.UID
}

// wantStore waits until the Ready condition of a store has a reason.
func (e *env) wantStore(name, reason string) {
	e.Helper()
	e.eventually(func() string {
		s := &fakev1.FakeStore{}
		if err := api.Get(e.ctx, types.NamespacedName{Namespace: e.ns, Name: name}, s); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != reason {
			return fmt.Sprintf("store %s is %+v, want %s", name, c, reason)
		}
		return ""
	})
}
