package testenv

import (
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
)

// Env is a namespace with its own operators and provider, so that tests can run in parallel.
type Env struct {
	*Client
	Server *fake.Server
	// Backend is the backend of the store "store".
	Backend *fake.Backend
	// Config is the configuration of operators that are started later, Flags their flags.
	Config *rest.Config
	Flags  []func(*operator.Flags)
	// EventsURL is where the operator of NewServed receives events.
	EventsURL string
	// prefix precedes the names of backends if tests share a server and its operator.
	prefix string
	stop   func()
}

// New creates a namespace with a store "store" over an empty backend, and starts an operator.
func New(t *testing.T, flags ...func(*operator.Flags)) *Env {
	t.Helper()
	e := NewIdle(t, flags...)
	e.Start()
	return e
}

// NewServed is New with the operator that serves all tests of NewCluster, too. Such a test can neither stop it nor set its flags.
func NewServed(t *testing.T) *Env {
	t.Helper()
	t.Parallel()
	e := On(t, wideServed(t), "t-"+RandomName())
	e.prefix, e.Server, e.EventsURL = e.NS+"-", everywhere.server, everywhere.events
	e.Backend = e.BackendOf("main")
	e.Namespace(e.NS, nil)
	deletePushes(t, e.Client)
	e.Create(e.Store("store", "main"))
	return e
}

// NewIdle is New without the operator.
func NewIdle(t *testing.T, flags ...func(*operator.Flags)) *Env {
	t.Helper()
	t.Parallel()
	return NewSerial(t, flags...)
}

// NewSerial is NewIdle for tests that arrange their parallel runs themselves.
func NewSerial(t *testing.T, flags ...func(*operator.Flags)) *Env {
	t.Helper()
	e := On(t, Shared(t), "t-"+RandomName())
	e.Flags = flags
	e.Namespace(e.NS, nil)
	e.Create(e.Store("store", "main"))
	return e
}

// On returns an Env for a namespace that the caller creates. For an empty namespace its operators serve the whole
// cluster.
func On(t testing.TB, p *Plane, ns string) *Env {
	t.Helper()
	e := &Env{
		Client: NewClient(t, p, ns),
		Server: fake.NewServer(), Config: p.Cluster.Config(), stop: func() {},
	}
	e.Backend = e.Server.Backend("main")
	t.Cleanup(func() { e.stop() })
	return e
}

// SecondOperator returns an Env for the same namespace and provider, with a second operator that does not run yet.
func (e *Env) SecondOperator(flags ...func(*operator.Flags)) *Env {
	e.Helper()
	second := On(e.TB, e.Plane, e.NS)
	second.Server, second.Backend, second.Flags = e.Server, e.Backend, flags
	return second
}

// Start runs an operator for this namespace and all Kinds of the provider, until Stop.
func (e *Env) Start(more ...operator.Option) {
	e.Helper()
	e.Serve(kindsOf(e.Server), more...)
}

// Serve is Start for the given Kinds.
func (e *Env) Serve(kinds []provider.Kind, more ...operator.Option) {
	e.Helper()
	e.wantOwn()
	e.stop = e.run("provider-fake", fakev1.Group, kinds, more...)
}

// Stop stops the operator that was started last.
func (e *Env) Stop() {
	e.Helper()
	e.wantOwn()
	e.stop()
}

// wantOwn fails if other tests share the operator.
func (e *Env) wantOwn() {
	e.Helper()
	if e.prefix != "" {
		e.Fatal("other tests share the operator of NewServed: use New to start or stop one")
	}
}

// Module runs the operator of a module until the returned function is called, or the test ends.
func (e *Env) Module(name, group string, kinds []provider.Kind, more ...operator.Option) (stop func()) {
	e.Helper()
	stop = e.run(name, group, kinds, more...)
	e.Cleanup(stop)
	return stop
}

func (e *Env) run(name, group string, kinds []provider.Kind, more ...operator.Option) (stop func()) {
	end := operatortest.Run(e.Operator(name, group, kinds, more...))
	return sync.OnceFunc(func() {
		if err := end(); err != nil {
			e.Errorf("operator %s: %v", name, err)
		}
	})
}

// Operator returns an operator for this namespace.
func (e *Env) Operator(name, group string, kinds []provider.Kind, more ...operator.Option) *operator.Operator {
	set := operator.WithFlags(func(f *operator.Flags) {
		f.Namespaces, f.ProviderTimeout = e.NS, 5*time.Second
		for _, set := range e.Flags {
			set(f)
		}
	})
	return operatorOf(name, group, e.Config, kinds, append([]operator.Option{set}, more...)...)
}

// operatorOf returns an operator for the whole cluster, without open ports.
func operatorOf(name, group string, config *rest.Config, kinds []provider.Kind, more ...operator.Option) *operator.Operator {
	opts := []operator.Option{
		operator.WithScheme(fakev1.AddToScheme),
		operator.WithConfig(config),
		operator.WithNamespace(metav1.NamespaceDefault),
		operator.WithRemoveDelay(300 * time.Millisecond),
		operator.WithFlags(func(f *operator.Flags) {
			f.MetricsAddress, f.ProbeAddress, f.LeaderElect, f.LogFormat = "0", "0", false, "text"
		}),
	}
	for _, k := range kinds {
		opts = append(opts, operator.WithStore(k))
	}
	return operator.New(name, group, append(opts, more...)...)
}

// kindsOf returns all Kinds that a module can serve: stores and generators.
func kindsOf(s *fake.Server) []provider.Kind {
	return slices.Concat(s.Kinds(), s.GeneratorKinds(), s.EventSourceKinds())
}

// WaitForEvents returns when the operator has processed all events of Secrets so far, because it repairs a later change only
// after them.
func (e *Env) WaitForEvents() {
	e.Helper()
	name := "settle-" + RandomName()
	e.Backend.Put(name, []byte("right"))
	es := e.ExternalSecret(name)
	e.Create(es)
	e.WantReady(name, v1alpha1.ReasonSecretSynced)
	s := e.WantSecret(name, "value", "right")
	Update(e.Client, s, func(s *corev1.Secret) { s.Data["value"] = []byte("wrong") })
	e.WantSecret(name, "value", "right")
	e.Delete(es)
}

// BackendOf returns the backend to which stores lead that Store returns for the same name.
func (e *Env) BackendOf(name string, opts ...fake.Option) *fake.Backend {
	return e.Server.Backend(e.BackendName(name), opts...)
}

// BackendName returns the name of BackendOf(name) in specs.
func (e *Env) BackendName(name string) string { return e.prefix + name }

// Store returns a store with a backend.
func (e *Env) Store(name, backend string, change ...func(*fakev1.FakeStore)) *fakev1.FakeStore {
	s := &fakev1.FakeStore{ObjectMeta: e.Meta(name), Spec: fakev1.FakeStoreSpec{Backend: e.BackendName(backend)}}
	for _, f := range change {
		f(s)
	}
	return s
}

// ExternalSecret returns an object that fills one key from the remote secret of the same name.
func (e *Env) ExternalSecret(name string, change ...Spec) *v1alpha1.ExternalSecret {
	return externalSecret(e.Meta(name), v1alpha1.StoreRef{Kind: "FakeStore", Name: "store"}, name, change...)
}

func externalSecret(meta metav1.ObjectMeta, store v1alpha1.StoreRef, key string, change ...Spec) *v1alpha1.ExternalSecret {
	es := &v1alpha1.ExternalSecret{ObjectMeta: meta, Spec: v1alpha1.ExternalSecretSpec{
		StoreRef: &store,
		Data:     []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: key}}},
	}}
	for _, f := range change {
		f(es)
	}
	return es
}

// PushSecret returns an object that pushes the key "password" of the Secret "source" to a remote secret with the
// object's name.
func (e *Env) PushSecret(name string, change ...func(*v1alpha1.PushSecret)) *v1alpha1.PushSecret {
	ps := &v1alpha1.PushSecret{
		ObjectMeta: e.Meta(name),
		Spec: v1alpha1.PushSecretSpec{
			StoreRefs: []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: "store"}},
			Selector:  v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "source"}},
			Data:      []v1alpha1.PushData{PushData("password", name, "")},
		},
	}
	for _, f := range change {
		f(ps)
	}
	return ps
}
