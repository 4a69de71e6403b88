package generation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// clusterEnv is a ClusterEnv with a generator.
type clusterEnv struct{ *testenv.ClusterEnv }

func newClusterEnv(t *testing.T) *clusterEnv {
	t.Helper()
	return &clusterEnv{testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})}
}

// clusterGenerator creates a ClusterFakeGenerator over the same backend as the store of the environment.
func (e *clusterEnv) clusterGenerator(change ...func(*fakev1.ClusterFakeGenerator)) *fakev1.ClusterFakeGenerator {
	e.Helper()
	o := &fakev1.ClusterFakeGenerator{ObjectMeta: metav1.ObjectMeta{Name: e.Name}, Spec: fakev1.ClusterFakeGeneratorSpec{
		FakeGeneratorSpec: fakev1.FakeGeneratorSpec{Backend: e.Name},
	}}
	for _, f := range change {
		f(o)
	}
	e.Create(o)
	return o
}

// generated makes an object take all values from the generator.
func (e *clusterEnv) generated(kind string) func(*v1alpha1.ExternalSecret) {
	return func(es *v1alpha1.ExternalSecret) {
		es.Spec.StoreRef, es.Spec.Data = nil, nil
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: kind, Name: e.Name}}}}
	}
}

// TestGeneratorConditions checks that a cluster generator serves the namespaces in its conditions, and no others.
func TestGeneratorConditions(t *testing.T) {
	e := newClusterEnv(t)
	e.clusterGenerator(func(g *fakev1.ClusterFakeGenerator) {
		g.Spec.Conditions = []v1alpha1.NamespaceCondition{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}}}
	})
	e.CreateNamespace("in", map[string]string{"team": "shop"})
	e.CreateNamespace("out", nil)
	for _, ns := range []string{"in", "out"} {
		e.CreateExternalSecret(ns, "", e.generated("ClusterFakeGenerator"))
		e.Create(&v1alpha1.PushSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespaced(ns), Name: "db"},
			Spec: v1alpha1.PushSecretSpec{
				StoreRefs: []v1alpha1.PushStoreRef{{Kind: "ClusterFakeStore", Name: e.Name}},
				Selector:  v1alpha1.PushSelector{GeneratorRef: &v1alpha1.StoreRef{Kind: "ClusterFakeGenerator", Name: e.Name}},
				Data:      []v1alpha1.PushData{{Match: v1alpha1.PushMatch{SecretKey: "username", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: "${namespace}"}}}},
			},
		})
	}
	e.In("in").WantReady("db", v1alpha1.ReasonSecretSynced)
	if m := e.In("out").WantReady("db", v1alpha1.ReasonForbidden).Message; !strings.Contains(m, e.Namespaced("out")) || !strings.Contains(m, "spec.conditions") {
		t.Errorf("Ready says %q, want it to name the namespace and the field", m)
	}
	e.In("in").WantPushed("db", v1alpha1.ReasonSecretSynced)
	if m := e.In("out").WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, "Denied: ClusterFakeGenerator") || !strings.Contains(m, "spec.conditions") {
		t.Errorf("Ready of the push says %q, want it to name the field", m)
	}
	if n := e.Backend.Count(fake.CallGenerate); n != 2 {
		t.Errorf("%d values were made, want 2 for the namespace that is admitted", n)
	}
	testenv.Update(e.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespaced("out")}}, func(n *corev1.Namespace) { n.Labels["team"] = "shop" })
	e.In("out").WantReady("db", v1alpha1.ReasonSecretSynced)
	e.In("out").WantPushed("db", v1alpha1.ReasonSecretSynced)
	if in, out := e.In("in").Data("db")["username"], e.In("out").Data("db")["username"]; in == out || in == "" {
		t.Errorf("two objects got %q and %q, want values of their own", in, out)
	}
}

// TestGeneratorAsStore checks the messages for a generator that is named as a store, and for a store named as a
// generator.
func TestGeneratorAsStore(t *testing.T) {
	e := newClusterEnv(t)
	e.clusterGenerator()
	e.CreateNamespace("store", nil)
	e.CreateNamespace("generator", nil)
	e.CreateExternalSecret("store", "k", func(es *v1alpha1.ExternalSecret) { es.Spec.StoreRef.Kind = "ClusterFakeGenerator" })
	if m := e.In("store").WantReady("db", v1alpha1.ReasonInvalidSpec).Message; !strings.Contains(m, "is a generator, and storeRef is for stores; name it in dataFrom[].sourceRef.generatorRef") {
		t.Errorf("Ready says %q", m)
	}
	e.CreateExternalSecret("generator", "k", e.generated("ClusterFakeStore"))
	if m := e.In("generator").WantReady("db", v1alpha1.ReasonInvalidSpec).Message; !strings.Contains(m, "is a store, and generatorRef is for generators; name it in storeRef") {
		t.Errorf("Ready says %q", m)
	}
}

// TestGeneratorClass checks that an operator leaves generators of another class alone.
func TestGeneratorClass(t *testing.T) {
	e := newClusterEnv(t)
	g := e.clusterGenerator(func(g *fakev1.ClusterFakeGenerator) { g.Spec.Controller = "other" })
	e.CreateNamespace("ns", nil)
	e.CreateExternalSecret("ns", "", e.generated("ClusterFakeGenerator"))
	e.CreateNamespace("control", nil)
	e.Backend.Put("k", []byte("v"))
	e.CreateExternalSecret("control", "k") // When it is in sync, the operator has also seen the objects created before.
	e.In("control").WantReady("db", v1alpha1.ReasonSecretSynced)
	es := &v1alpha1.ExternalSecret{}
	if err := e.API.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespaced("ns"), Name: "db"}, es); err != nil {
		t.Fatal(err)
	}
	if n := e.Backend.Count(fake.CallGenerate); n != 0 || len(es.Status.Conditions)+len(es.Status.Parts) != 0 {
		t.Errorf("%d values were made, and the status is %+v; want neither", n, es.Status)
	}
	testenv.Update(e.Client, g, func(g *fakev1.ClusterFakeGenerator) { g.Spec.Controller = "" })
	e.In("ns").WantReady("db", v1alpha1.ReasonSecretSynced)
	if n := e.Backend.Count(fake.CallGenerate); n != 1 {
		t.Errorf("%d values were made, want 1", n)
	}
}
