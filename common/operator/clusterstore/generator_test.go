package clusterstore_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// clusterGenerator creates a ClusterFakeGenerator beside the store of the environment.
func (e *env) clusterGenerator(change ...func(*fakev1.ClusterFakeGenerator)) *fakev1.ClusterFakeGenerator {
	e.Helper()
	o := &fakev1.ClusterFakeGenerator{ObjectMeta: metav1.ObjectMeta{Name: e.name}, Spec: fakev1.ClusterFakeGeneratorSpec{
		FakeGeneratorSpec: fakev1.FakeGeneratorSpec{Backend: e.name},
	}}
	for _, f := range change {
		f(o)
	}
	e.create(o)
	return o
}

// generated makes an object take all from the generator.
func (e *env) generated(kind string) func(*v1alpha1.ExternalSecret) {
	return func(es *v1alpha1.ExternalSecret) {
		es.Spec.StoreRef, es.Spec.Data = nil, nil
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: kind, Name: e.name}}}}
	}
}

func (e *env) user(namespace string) string {
	e.Helper()
	s := &corev1.Secret{}
	if err := api.Get(e.ctx, client.ObjectKey{Namespace: e.ns(namespace), Name: "db"}, s); client.IgnoreNotFound(err) != nil {
		e.Fatal(err)
	}
	return string(s.Data["username"])
}

// TestGeneratorConditions has a cluster generator serve the namespaces that it lists, and no others.
func TestGeneratorConditions(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{})
	e.clusterGenerator(func(g *fakev1.ClusterFakeGenerator) {
		g.Spec.Conditions = []v1alpha1.NamespaceCondition{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}}}
	})
	e.namespace("in", map[string]string{"team": "shop"})
	e.namespace("out", nil)
	for _, ns := range []string{"in", "out"} {
		e.externalSecret(ns, "", e.generated("ClusterFakeGenerator"))
		e.create(&v1alpha1.PushSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.ns(ns), Name: "db"},
			Spec: v1alpha1.PushSecretSpec{
				StoreRefs: []v1alpha1.PushStoreRef{{Kind: "ClusterFakeStore", Name: e.name}},
				Selector:  v1alpha1.PushSelector{GeneratorRef: &v1alpha1.StoreRef{Kind: "ClusterFakeGenerator", Name: e.name}},
				Data:      []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "username", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: "${namespace}"}}}},
			},
		})
	}
	e.wantReady("in", v1alpha1.ReasonSecretSynced)
	if m := e.wantReady("out", v1alpha1.ReasonForbidden); !strings.Contains(m, e.ns("out")) || !strings.Contains(m, "spec.conditions") {
		t.Errorf("Ready says %q, want it to name the namespace and the field", m)
	}
	e.wantPushed("in", v1alpha1.ReasonSecretSynced)
	if m := e.wantPushed("out", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, "Denied: ClusterFakeGenerator") || !strings.Contains(m, "spec.conditions") {
		t.Errorf("Ready of the push says %q, want it to name the field", m)
	}
	if n := e.backend.Count(fake.CallGenerate); n != 2 {
		t.Errorf("%d values were made, want 2 for the namespace that is admitted", n)
	}
	update(e, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns("out")}}, func(n *corev1.Namespace) { n.Labels["team"] = "shop" })
	e.wantReady("out", v1alpha1.ReasonSecretSynced)
	e.wantPushed("out", v1alpha1.ReasonSecretSynced)
	if in, out := e.user("in"), e.user("out"); in == out || in == "" {
		t.Errorf("two objects got %q and %q, want values of their own", in, out)
	}
}

// TestGeneratorAsStore says what to write where a generator is named as a store, and the other way round.
func TestGeneratorAsStore(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{})
	e.clusterGenerator()
	e.namespace("store", nil)
	e.namespace("generator", nil)
	e.externalSecret("store", "k", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "ClusterFakeGenerator" })
	if m := e.wantReady("store", v1alpha1.ReasonInvalidSpec); !strings.Contains(m, "is a generator, and storeRef names stores; name it in dataFrom[].sourceRef.generatorRef") {
		t.Errorf("Ready says %q", m)
	}
	e.externalSecret("generator", "k", e.generated("ClusterFakeStore"))
	if m := e.wantReady("generator", v1alpha1.ReasonInvalidSpec); !strings.Contains(m, "is a store, and generatorRef names generators; name it in storeRef") {
		t.Errorf("Ready says %q", m)
	}
}

// TestGeneratorClass leaves generators of another class to their own operator.
func TestGeneratorClass(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{})
	g := e.clusterGenerator(func(g *fakev1.ClusterFakeGenerator) { g.Spec.Controller = "other" })
	e.namespace("ns", nil)
	e.externalSecret("ns", "", e.generated("ClusterFakeGenerator"))
	e.namespace("control", nil)
	e.backend.Put("k", []byte("v"))
	e.externalSecret("control", "k") // Once it is in step, the operator has seen what was made before it.
	e.wantReady("control", v1alpha1.ReasonSecretSynced)
	es := &v1alpha1.ExternalSecret{}
	if err := api.Get(e.ctx, client.ObjectKey{Namespace: e.ns("ns"), Name: "db"}, es); err != nil {
		t.Fatal(err)
	}
	if n := e.backend.Count(fake.CallGenerate); n != 0 || len(es.Status.Conditions)+len(es.Status.Parts) != 0 {
		t.Errorf("%d values were made, and the status says %+v; want neither", n, es.Status)
	}
	update(e, g, func(g *fakev1.ClusterFakeGenerator) { g.Spec.Controller = "" })
	e.wantReady("ns", v1alpha1.ReasonSecretSynced)
	if n := e.backend.Count(fake.CallGenerate); n != 1 {
		t.Errorf("%d values were made, want 1", n)
	}
}
