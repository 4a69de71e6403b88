package clusterstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
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
	api     client.Client
	cluster *controlplane.ControlPlane
	server  = fake.NewServer()
)

// watcher returns a client that can watch.
func watcher() client.WithWatch {
	c, err := client.NewWithWatch(cluster.Config(), client.Options{Scheme: api.Scheme()})
	if err != nil {
		panic(err) // It is made of what api was made of.
	}
	return c
}

// TestMain runs one operator over the whole cluster for all tests.
func TestMain(m *testing.M) {
	controlplane.Main(m, func(c *controlplane.ControlPlane) error {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, fakev1.AddToScheme} {
			if err := add(scheme); err != nil {
				return err
			}
		}
		ctrl.SetLogger(logr.Discard())
		cluster = c
		var err error
		if api, err = client.New(c.Config(), client.Options{Scheme: scheme}); err != nil {
			return err
		}
		go run(c.Config())
		return nil
	}, controlplane.WithCRDs(controlplane.Manifests(fake.CRDs, manifests.CRDs)...))
}

func run(cfg *rest.Config) {
	opts := []operator.Option{
		operator.WithScheme(fakev1.AddToScheme),
		operator.WithConfig(cfg),
		operator.WithFlags(func(f *operator.Flags) {
			f.MetricsAddress, f.ProbeAddress, f.LeaderElect, f.LogFormat = "0", "0", false, "text"
		}),
	}
	for _, k := range slices.Concat(server.Kinds(), server.GeneratorKinds()) {
		opts = append(opts, operator.WithStore(k))
	}
	if err := operator.New("provider-fake", fakev1.Group, opts...).Run(context.Background()); err != nil {
		panic(err) // It runs as long as the tests do.
	}
}

// env is a cluster store with a backend of its own, and namespaces that begin with its name.
type env struct {
	*testing.T
	ctx     context.Context
	name    string
	backend *fake.Backend
}

func newEnv(t *testing.T, spec v1alpha1.ClusterStoreSpec, change ...func(*fakev1.ClusterFakeStore)) *env {
	t.Helper()
	t.Parallel()
	e := &env{T: t, ctx: t.Context(), name: "s" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))}
	e.backend = server.Backend(e.name)
	s := &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.name}, Spec: fakev1.ClusterFakeStoreSpec{
		FakeStoreSpec: fakev1.FakeStoreSpec{Backend: e.name}, ClusterStoreSpec: spec,
	}}
	for _, f := range change {
		f(s)
	}
	e.create(s)
	return e
}

// ns returns the name of a namespace.
func (e *env) ns(name string) string { return e.name + "-" + name }

func (e *env) create(o client.Object) {
	e.Helper()
	if err := api.Create(e.ctx, o); err != nil {
		e.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// namespace creates a namespace, with labels if there are pairs.
func (e *env) namespace(name string, labels map[string]string) {
	e.Helper()
	e.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns(name), Labels: labels}})
}

// externalSecret creates an object "db" that reads a key of the store.
func (e *env) externalSecret(namespace, key string, change ...func(*v1alpha1.ExternalSecret)) {
	e.Helper()
	es := &v1alpha1.ExternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.ns(namespace), Name: "db"},
		Spec: v1alpha1.ExternalSecretSpec{
			StoreRef: &v1alpha1.StoreRef{Kind: "ClusterFakeStore", Name: e.name},
			Data:     []v1alpha1.DataEntry{{SecretKey: "value", RemoteRef: v1alpha1.RemoteRef{Key: key}}},
		},
	}
	for _, f := range change {
		f(es)
	}
	e.create(es)
}

// update changes an object live.
func update[T client.Object](e *env, o T, change func(T)) {
	e.Helper()
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := api.Get(e.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(o)
		return api.Update(e.ctx, o)
	}); err != nil {
		e.Fatal(err)
	}
}

// wantReady waits until the object of a namespace has a reason, and returns the message.
func (e *env) wantReady(namespace, reason string) string {
	e.Helper()
	var message string
	controlplane.Eventually(e, func() string {
		es := &v1alpha1.ExternalSecret{}
		if err := api.Get(e.ctx, client.ObjectKey{Namespace: e.ns(namespace), Name: "db"}, es); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(es.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != reason || c.ObservedGeneration != es.Generation {
			return fmt.Sprintf("%s: Ready is %+v, want %s", e.ns(namespace), c, reason)
		}
		message = c.Message
		return ""
	})
	return message
}

// value returns what the Secret of a namespace holds; empty if there is none.
func (e *env) value(namespace string) string {
	e.Helper()
	s := &corev1.Secret{}
	err := api.Get(e.ctx, client.ObjectKey{Namespace: e.ns(namespace), Name: "db"}, s)
	if err != nil && !kerrors.IsNotFound(err) {
		e.Fatal(err)
	}
	return string(s.Data["value"])
}

// wantStore waits until the store has a reason, and returns the message.
func (e *env) wantStore(reason string) string {
	e.Helper()
	var message string
	controlplane.Eventually(e, func() string {
		s := &fakev1.ClusterFakeStore{}
		if err := api.Get(e.ctx, client.ObjectKey{Name: e.name}, s); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != reason {
			return fmt.Sprintf("Ready of the store is %+v, want %s", c, reason)
		}
		message = c.Message
		return ""
	})
	return message
}

// wantUntouched fails if a secret was asked for after a time.
func (e *env) wantUntouched(since time.Time) {
	e.Helper()
	for _, r := range e.backend.Calls(fake.CallGet, fake.CallGetBatch, fake.CallFind) {
		if r.Time.After(since) {
			e.Errorf("the provider was called: %+v", r)
		}
	}
}
