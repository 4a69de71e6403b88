package generation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestHangingGenerators has one namespace whose generators do not answer as long as the test runs, for more objects than the
// operator works on at the same time. Values of another namespace must be rotated, renewed and generated meanwhile.
func TestHangingGenerators(t *testing.T) {
	e := testenv.NewIdle(t)
	hostile := &testenv.Client{Client: e.In(e.NS + "-hostile")}
	e.Namespace(hostile.NS, nil)
	e.Flags = []func(*operator.Flags){func(f *operator.Flags) {
		f.Namespaces, f.ProviderTimeout, f.Concurrency = e.NS+","+hostile.NS, time.Hour, 2
	}}
	g := genEnvOf(e, leased)
	hanging := g.Server.Backend("hanging")
	t.Cleanup(hanging.Inject(fake.Fault{Call: fake.CallGenerate, Hang: true})) // The operator waits for calls when it stops.
	const generators, objects = 3, 3
	for i := range generators {
		name := fmt.Sprintf("g%d", i)
		hostile.Create(&fakev1.FakeGenerator{ObjectMeta: hostile.Meta(name), Spec: fakev1.FakeGeneratorSpec{Backend: "hanging"}})
		for j := range objects {
			hostile.Create(&v1alpha1.ExternalSecret{ObjectMeta: hostile.Meta(fmt.Sprintf("%s-%d", name, j)), Spec: g.generated("", of(name)).Spec})
		}
	}
	g.Eventually(func() string {
		if n := hanging.Count(fake.CallGenerate); n < generators*objects {
			return fmt.Sprintf("%d of %d objects wait for their generators", n, generators*objects)
		}
		return ""
	})
	g.Create(g.generator("rotates", leased, func(o *fakev1.FakeGenerator) { o.Spec.RotationInterval = "30m" }))
	renewed, rotated := g.made("renewed"), g.made("rotated", of("rotates"))
	for range 2 {
		g.wantDelivered("renewed")
		g.pass(45 * time.Minute)
		g.wantRenewed()
		rotated = g.wantUser("rotated", "rotationInterval has passed", not(rotated))
	}
	g.made("late")
	if got, n := g.user("renewed"), g.Backend.Count(fake.CallRenew); got != renewed || n < 2 {
		t.Errorf("the credential is %q after %d renewals, want %q after two", got, n, renewed)
	}
}
