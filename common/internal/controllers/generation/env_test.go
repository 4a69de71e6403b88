package generation_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/handoff"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

type spec = testenv.Spec

func TestMain(m *testing.M) { testenv.Main(m) }

// genEnv is an environment with an operator and a provider. The test can advance their clock and refuse their requests.
type genEnv struct {
	*testenv.Env
	ahead atomic.Int64
	gate  testenv.Gate
}

// newGenEnv starts an environment with a FakeGenerator "gen" and an operator. It fails the test if a credential is
// revoked while a Secret holds it.
func newGenEnv(t *testing.T, change ...func(*fakev1.FakeGenerator)) *genEnv {
	t.Helper()
	return genEnvOf(testenv.NewIdle(t), change...)
}

// newServedEnv is newGenEnv for a test that neither stops the operator, nor advances its clock, nor refuses its requests: it has the
// operator that serves all namespaces.
func newServedEnv(t *testing.T, change ...func(*fakev1.FakeGenerator)) *genEnv {
	t.Helper()
	return idleGenEnv(testenv.NewServed(t), change...)
}

// genEnvOf is newGenEnv for an existing environment.
func genEnvOf(e *testenv.Env, change ...func(*fakev1.FakeGenerator)) *genEnv {
	e.Helper()
	g := idleGenEnv(e, change...)
	g.Config.Wrap(g.gate.Wrap)
	g.Start(testenv.Ahead(&g.ahead))
	return g
}

// idleGenEnv is genEnvOf without the operator.
func idleGenEnv(e *testenv.Env, change ...func(*fakev1.FakeGenerator)) *genEnv {
	e.Helper()
	g := &genEnv{Env: e}
	g.Backend = g.BackendOf("gen",
		fake.Clock(func() time.Time { return time.Now().Add(time.Duration(g.ahead.Load())) }),
		fake.OnRevoke(g.checkRevoked))
	g.Create(g.generator("gen", change...))
	return g
}

// checkRevoked fails the test if a Secret holds a credential that is being revoked.
func (g *genEnv) checkRevoked(name string) {
	var list corev1.SecretList
	if err := g.API.List(context.Background(), &list, client.InNamespace(g.NS)); err != nil {
		g.Errorf("list Secrets: %v", err)
	}
	for _, s := range list.Items {
		for k, v := range s.Data {
			if s.Type != handoff.Type && string(v) == name && s.DeletionTimestamp == nil {
				g.Errorf("credential %q is revoked while Secret %s holds it under %q", name, s.Name, k)
			}
		}
	}
}

func (g *genEnv) restart() {
	g.Stop()
	g.Start(testenv.Ahead(&g.ahead))
}

func (g *genEnv) generator(name string, change ...func(*fakev1.FakeGenerator)) *fakev1.FakeGenerator {
	o := &fakev1.FakeGenerator{ObjectMeta: g.Meta(name), Spec: fakev1.FakeGeneratorSpec{Backend: g.BackendName("gen"), Prefix: "u"}}
	for _, f := range change {
		f(o)
	}
	return o
}

// leased configures credentials with a lifetime of one hour that are revoked as soon as they are replaced.
func leased(g *fakev1.FakeGenerator) { g.Spec.TTL, g.Spec.RevocationDelay = "1h", "0s" }

// generated returns an object that takes all values from the generator.
func (g *genEnv) generated(name string, change ...spec) *v1alpha1.ExternalSecret {
	es := g.ExternalSecret(name, func(es *v1alpha1.ExternalSecret) {
		es.Spec.StoreRef, es.Spec.Data = nil, nil
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "FakeGenerator", Name: "gen"}}}}
	})
	for _, f := range change {
		f(es)
	}
	return es
}

// made creates an object and returns the username that it got.
func (g *genEnv) made(name string, change ...spec) string {
	g.Helper()
	g.Create(g.generated(name, change...))
	g.WantReady(name, v1alpha1.ReasonSecretSynced)
	return g.user(name)
}

// user returns the username in a Secret.
func (g *genEnv) user(name string) string {
	g.Helper()
	return g.Data(name)["username"]
}

// pass advances the clock and requeues all parts. The operator may delete a part as soon as the clock is advanced.
func (g *genEnv) pass(d time.Duration) {
	g.Helper()
	g.ahead.Add(int64(d))
	for _, p := range g.parts() {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"looked-at":%q}}}`, testenv.RandomName())
		err := g.API.Patch(g.Ctx, &p, client.RawPatch(types.MergePatchType, []byte(patch)))
		if client.IgnoreNotFound(err) != nil {
			g.Fatal(err)
		}
	}
}

// parts returns the parts of the namespace.
func (g *genEnv) parts() []corev1.Secret {
	g.Helper()
	var list corev1.SecretList
	if err := g.API.List(g.Ctx, &list, client.InNamespace(g.NS)); err != nil {
		g.Fatal(err)
	}
	var parts []corev1.Secret
	for _, s := range list.Items {
		if s.Type == handoff.Type {
			parts = append(parts, s)
		}
	}
	return parts
}

// wantUser waits until a Secret holds a username that matches ok.
func (g *genEnv) wantUser(name, why string, ok func(string) bool) string {
	g.Helper()
	var got string
	g.Eventually(func() string {
		if got = g.user(name); ok(got) {
			return ""
		}
		return fmt.Sprintf("%s: Secret %s holds %q", why, name, got)
	})
	return got
}

func not(was string) func(string) bool {
	return func(is string) bool { return is != "" && is != was }
}

// wantLive waits until exactly these credentials are neither revoked nor expired.
func (g *genEnv) wantLive(want ...string) {
	g.Helper()
	g.Eventually(func() string {
		if got := g.Backend.Live(); strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Sprintf("live are %q, want %q", got, want)
		}
		return ""
	})
}

// wantDelivered waits until the status of an object shows that its Secret holds the values of the part, and nothing is
// left to revoke.
func (g *genEnv) wantDelivered(name string) {
	g.Helper()
	g.Eventually(func() string {
		es := g.Get(name)
		if !meta.IsStatusConditionTrue(es.Status.Conditions, v1alpha1.ConditionReady) || len(es.Status.Parts) != 1 {
			return fmt.Sprintf("the object is out of sync: %+v, %+v", es.Status.Conditions, es.Status.Parts)
		}
		for _, p := range g.parts() {
			rec, ok := handoff.Of(p.Annotations)
			for _, e := range rec.Entries {
				if ok && p.UID == es.Status.Parts[0].UID && len(es.Status.Sources) == 1 && es.Status.Sources[0].Version == e.Version && len(rec.Retired) == 0 {
					return ""
				}
			}
		}
		return "the status does not match the part"
	})
}

// writesOf matches writes of parts, or of all other Secrets.
func writesOf(parts bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		_, name, ok := strings.Cut(r.URL.Path, "/secrets")
		if !ok || r.Method == http.MethodGet {
			return false
		}
		if r.Method == http.MethodPost {
			body, err := r.GetBody()
			if err != nil {
				return false
			}
			raw, err := io.ReadAll(body)
			if err != nil {
				return false
			}
			name = string(raw) // The name is readable in every encoding.
		}
		return strings.Contains(name, "-part-") == parts
	}
}
