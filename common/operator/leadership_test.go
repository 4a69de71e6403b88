package operator_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestLostLeadership lets an operator lose the lead while each kind of walk waits for a provider. When the providers answer, it
// must not write.
func TestLostLeadership(t *testing.T) {
	e := testenv.NewIdle(t)
	gen := e.Server.Backend("gen")
	slow := e.Server.Backend("slow")
	e.Backend.Put("db", []byte("s3cret"))
	e.Create(&fakev1.FakeGenerator{ObjectMeta: e.Meta("gen"), Spec: fakev1.FakeGeneratorSpec{Backend: "gen", TTL: "1h"}})
	e.Source("source", map[string]string{"password": "p"})
	release := []func(){
		e.Backend.Inject(fake.Fault{Call: fake.CallGetBatch, Hang: true}),
		e.Backend.Inject(fake.Fault{Call: fake.CallObserve, Hang: true}),
		gen.Inject(fake.Fault{Call: fake.CallGenerate, Hang: true}),
		slow.Inject(fake.Fault{Call: fake.CallCheck, Hang: true}),
	}

	leases := testenv.Gate{}
	var lost atomic.Bool
	writes := make(chan string, 100)
	config := e.Config
	e.Config = rest.CopyConfig(config)
	e.Config.Wrap(leases.Wrap)
	e.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if lost.Load() && r.Method != http.MethodGet && r.Context().Err() == nil {
				writes <- r.Method + " " + r.URL.Path
			}
			return next.RoundTrip(r)
		})
	})
	first := e.Operator("provider-fake", fakev1.Group, append(e.Server.Kinds(), e.Server.GeneratorKinds()...), operator.WithFlags(func(f *operator.Flags) {
		f.LeaderElect, f.LeaderElectNamespace, f.ProviderTimeout = true, e.NS, time.Minute
		f.LeaseDuration, f.RenewDeadline, f.RetryPeriod = 7*time.Second, 2*time.Second, 200*time.Millisecond
	}))
	ended := make(chan error, 1)
	go func() { ended <- first.Run(e.Ctx) }()

	e.Create(e.ExternalSecret("db"))
	e.Create(&v1alpha1.ExternalSecret{ObjectMeta: e.Meta("made"), Spec: v1alpha1.ExternalSecretSpec{
		DataFrom: []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "FakeGenerator", Name: "gen"}}}},
	}})
	e.Create(e.PushSecret("push"))
	e.Create(e.Store("slow", "slow"))
	for b, call := range map[*fake.Backend]fake.Call{gen: fake.CallGenerate, slow: fake.CallCheck} {
		if err := b.Wait(e.Ctx, 1, call); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range []fake.Call{fake.CallGetBatch, fake.CallObserve} {
		if err := e.Backend.Wait(e.Ctx, 1, call); err != nil {
			t.Fatal(err)
		}
	}

	leases.Close(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") })
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "leader election lost") {
		t.Fatalf("Run(): %v, want the loss of the lead", err)
	}
	lost.Store(true)
	for _, f := range release {
		f()
	}

	// Another operator brings everything in sync meanwhile.
	e.Config = config
	e.Start()
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
	e.WantReady("made", v1alpha1.ReasonSecretSynced)
	e.WantPushed("push", v1alpha1.ReasonSecretSynced)
	e.WantStore("slow", v1alpha1.ReasonStoreValid)
	for len(writes) > 0 {
		t.Errorf("a write after the lead was lost: %s", <-writes)
	}
}
