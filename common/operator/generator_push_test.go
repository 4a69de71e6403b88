package operator_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// generatedPush returns a PushSecret that pushes what the generator makes for it.
func (g *genEnv) generatedPush(name string, change ...func(*v1alpha1.PushSecret)) *v1alpha1.PushSecret {
	ps := g.pushSecret(name, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Selector = v1alpha1.PushSelector{GeneratorRef: &v1alpha1.StoreRef{Kind: "FakeGenerator", Name: "gen"}}
		ps.Spec.Data = []v1alpha1.PushData{pushData("username", name+"-${name}", "")}
	})
	for _, f := range change {
		f(ps)
	}
	return ps
}

// TestPushGenerated follows a credential that is generated for a store: it stays, it is rotated, the one
// before it is revoked when the store holds the new one, and it goes with the object.
func TestPushGenerated(t *testing.T) {
	g := newGenEnv(t, leased)
	remote := g.server.Backend("main")
	g.create(g.generatedPush("db", pushDeletes))
	g.wantPushed("db", v1alpha1.ReasonSecretSynced)
	live := func(why string, n int) string {
		t.Helper()
		var users []string
		g.eventually(func() string {
			if users = g.backend.Live(); len(users) != n {
				return fmt.Sprintf("%s: live are %q", why, users)
			}
			return ""
		})
		return users[len(users)-1]
	}
	first := live("one is made", 1)
	g.wantRemote(remote, "db-db", first)
	g.restart()
	g.pass(0)
	update(g.env, g.getPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "2h" })
	g.wantPushed("db", v1alpha1.ReasonSecretSynced)
	g.wantRemote(remote, "db-db", first)

	open := remote.Inject(fake.Fault{Call: fake.CallUpdate, Err: errUnavailable})
	update(g.env, g.getPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	second := live("both live until the store has the new one", 2)
	g.eventually(func() string {
		if m := g.wantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "Unavailable") {
			return m
		}
		return ""
	})
	g.pass(0)
	live("nothing is revoked meanwhile", 2)
	open()
	g.wantRemote(remote, "db-db", second)
	g.wantLive(second)
	if n := g.backend.Count(fake.CallGenerate); n != 2 {
		t.Errorf("%d credentials were made, want 2", n)
	}
	g.delete(g.getPush("db"))
	g.wantRemote(remote, "db-db", "")
	g.wantLive()
	g.wantNoParts()
}

// TestPushGeneratedIfNotExists makes the store the source of truth: what is there wins over what is made.
func TestPushGeneratedIfNotExists(t *testing.T) {
	g := newGenEnv(t)
	remote := g.server.Backend("main")
	once := func(ps *v1alpha1.PushSecret) { ps.Spec.UpdatePolicy = v1alpha1.UpdateIfNotExists }
	g.create(g.generatedPush("db", once))
	g.wantPushed("db", v1alpha1.ReasonSecretSynced)
	first := string(must(remote.Value("db-db")))
	g.delete(g.getPush("db"))
	g.wantNoParts()
	g.create(g.generatedPush("db", once))
	g.wantPushed("db", v1alpha1.ReasonSecretAlreadyExists)
	g.wantRemote(remote, "db-db", first)
	if n := g.backend.Count(fake.CallGenerate); n != 2 {
		t.Errorf("%d values were made, want 2: the part went with its object", n)
	}
}

func must(b []byte, ok bool) []byte {
	if !ok {
		return []byte("there is none")
	}
	return b
}

// TestPushGeneratedTemplate pushes what a template makes of generated values.
func TestPushGeneratedTemplate(t *testing.T) {
	g := newGenEnv(t)
	g.create(g.generatedPush("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Template = &v1alpha1.Template{Data: map[string]string{"url": "db://{{ .username }}@db"}}
		ps.Spec.Data = []v1alpha1.PushData{pushData("url", "db", "")}
	}))
	g.wantPushed("db", v1alpha1.ReasonSecretSynced)
	g.wantRemote(g.server.Backend("main"), "db", "db://u000001@db")
}

// TestPushGenerateFails says why nothing is pushed.
func TestPushGenerateFails(t *testing.T) {
	g := newGenEnv(t)
	remove := g.backend.Inject(fake.Fault{Call: fake.CallGenerate, Err: errDenied})
	g.create(g.generatedPush("db"))
	if m := g.wantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, `Denied: FakeGenerator "gen": `) {
		t.Errorf("Ready says %q", m)
	}
	remove()
	g.wantPushed("db", v1alpha1.ReasonSecretSynced)
	g.create(g.generatedPush("none", func(ps *v1alpha1.PushSecret) { ps.Spec.Selector.GeneratorRef.Name = "none" }))
	if m := g.wantPushed("none", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, `NotFound: FakeGenerator "none": it does not exist`) {
		t.Errorf("Ready says %q", m)
	}
}

// TestPushToGenerator refuses a generator that is named as a store.
func TestPushToGenerator(t *testing.T) {
	g := newGenEnv(t)
	g.create(g.generatedPush("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeGenerator", Name: "gen"}}
	}))
	if m := g.wantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, `Invalid: FakeGenerator "gen" is a generator`) {
		t.Errorf("Ready says %q", m)
	}
}

func sorted(names ...string) []string { return slices.Sorted(slices.Values(names)) }

// TestStaleCaches has an operator one of whose caches is behind, beside one that is up to date and has
// rotated already. The one behind must not rotate again.
func TestStaleCaches(t *testing.T) {
	t.Parallel()
	never := func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever }
	rotate := func(g *genEnv) { update(g.env, g.get("db"), request("2")) }
	cases := map[string]struct {
		reason, resource string
		rotate           func(g *genEnv)
		// keeps is true if the value stays.
		keeps bool
	}{
		"Objects": {"It sees an older request than the one that was served.", "externalsecrets", rotate, false},
		"Parts":   {"It does not see that the request was served.", "secrets", rotate, false},
		"Generators": {"It sees the generator as it was.", "fakegenerators", func(g *genEnv) {
			update(g.env, g.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = "v" })
		}, false},
		"Owners": {"It sees an object that is no more, and must not give the part back to it.", "externalsecrets", func(g *genEnv) {
			g.delete(g.get("db"))
			g.create(g.generated("db", request("1"), never))
			g.wantReady("db", v1alpha1.ReasonSecretSynced)
			g.wantDelivered("db")
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGenEnv(t, leased)
			g.create(g.generated("db", request("1"), never))
			g.wantReady("db", v1alpha1.ReasonSecretSynced)
			g.wantDelivered("db")
			first := g.user("db")
			g.stop()

			behind := &genEnv{env: &env{T: g.T, ctx: g.ctx, ns: g.ns, server: g.server, backend: g.backend, config: rest.CopyConfig(config)}}
			l := newLag(tc.resource)
			var looks, writes atomic.Int32 // of the operator that is behind, at the part
			behind.config.Wrap(l.wrap)
			behind.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/secrets/db-part-") {
						looks.Add(1)
					}
					if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/secrets/db-part-") {
						writes.Add(1)
					}
					return next.RoundTrip(r)
				})
			})
			behind.startBy(&g.ahead)
			defer func() { behind.stop() }()
			g.create(g.generator("warm", leased))
			warm := g.made("warm", func(es *v1alpha1.ExternalSecret) { es.Spec.DataFrom[0].SourceRef.GeneratorRef.Name = "warm" }) // Its caches are full.
			g.wantDelivered("warm")
			defer l.hold(false)
			l.hold(true)
			looks.Store(0)
			writes.Store(0)
			g.startBy(&g.ahead)

			tc.rotate(g)
			second, made := first, 2
			if !tc.keeps {
				second, made = g.wantUser("db", tc.reason, not(first)), 3
			}
			g.wantLive(sorted(warm, second)...)
			g.pass(0)
			g.eventually(func() string {
				if looks.Load() == 0 {
					return "the operator that is behind has not looked at the part"
				}
				return ""
			})
			if n := writes.Load(); tc.keeps && n > 0 {
				t.Errorf("%s\nthe operator that is behind has written the part %d times", tc.reason, n)
			}
			l.hold(false)
			g.wantReady("db", v1alpha1.ReasonSecretSynced)
			g.wantLive(sorted(warm, second)...)
			if diff := cmp.Diff(second, g.user("db")); diff != "" {
				t.Errorf("%s\nthe Secret: -want, +got:\n%s", tc.reason, diff)
			}
			if n := g.backend.Count(fake.CallGenerate); n != made {
				t.Errorf("%s\n%d credentials were made, want %d", tc.reason, n, made)
			}
		})
	}
}
