package generation_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// tooLate is less than the timeout of a call: whatever waits for a call that hangs takes longer.
const tooLate = 20 * time.Second

// TestHangingGenerators has one namespace with 320 objects of 40 generators that never answer. Values of another
// namespace must be rotated, renewed and generated meanwhile.
func TestHangingGenerators(t *testing.T) {
	e := newClusterEnv(t)
	hostile, healthy := e.in("hostile"), e.in("healthy")
	for i := range 40 {
		backend := fmt.Sprintf("%s-%d", e.Name, i)
		t.Cleanup(e.Server.Backend(backend).Inject(fake.Fault{Call: fake.CallGenerate, Hang: true})) // The operator waits for calls when it stops.
		hostile.generator(fmt.Sprintf("g%d", i), fakev1.FakeGeneratorSpec{Backend: backend})
		for j := range 8 {
			hostile.object(fmt.Sprintf("db-%d-%d", i, j), fmt.Sprintf("g%d", i))
		}
	}
	healthy.generator("rotated", fakev1.FakeGeneratorSpec{Backend: e.Name, Prefix: "r", GeneratorSpec: v1alpha1.GeneratorSpec{RotationInterval: "5s"}})
	healthy.generator("renewed", fakev1.FakeGeneratorSpec{Backend: e.Name, Prefix: "l", TTL: "20s"})
	start := time.Now()
	healthy.object("rotated", "rotated")
	healthy.object("renewed", "renewed")
	healthy.WantReady("renewed", v1alpha1.ReasonSecretSynced)
	healthy.WantReady("rotated", v1alpha1.ReasonSecretSynced)
	t.Logf("two new objects took %s", time.Since(start))
	leased := healthy.Data("renewed")["username"]
	for range 4 {
		since, was := time.Now(), healthy.Data("rotated")["username"]
		e.Eventually(func() string {
			if healthy.Data("rotated")["username"] == was {
				return "the values were not rotated"
			}
			return ""
		})
		took := time.Since(since)
		t.Logf("a rotation every 5s took %s", took)
		if took > tooLate {
			t.Errorf("a rotation that is due every 5s took %s", took)
		}
	}
	start = time.Now()
	healthy.object("late", "renewed")
	healthy.WantReady("late", v1alpha1.ReasonSecretSynced)
	took := time.Since(start)
	t.Logf("a new object took %s", took)
	if took > tooLate {
		t.Errorf("a new object took %s", took)
	}
	if got := healthy.Data("renewed")["username"]; got != leased {
		t.Errorf("the credential %q was replaced by %q: its renewal was late", leased, got)
	}
}

// tenant is one namespace of a clusterEnv.
type tenant struct{ *testenv.Client }

func (e *clusterEnv) in(namespace string) tenant {
	e.CreateNamespace(namespace, nil)
	return tenant{e.In(namespace)}
}

func (n tenant) generator(name string, spec fakev1.FakeGeneratorSpec) {
	n.Create(&fakev1.FakeGenerator{ObjectMeta: n.Meta(name), Spec: spec})
}

// object creates an object that takes all values from a generator.
func (n tenant) object(name, generator string) {
	n.Create(&v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: n.NS, Name: name}, Spec: v1alpha1.ExternalSecretSpec{
		RefreshInterval: "1h",
		DataFrom:        []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "FakeGenerator", Name: generator}}}},
	}})
}
