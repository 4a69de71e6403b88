package generation_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// generatedPush returns a PushSecret that pushes values of the generator.
func (g *genEnv) generatedPush(name string, change ...func(*v1alpha1.PushSecret)) *v1alpha1.PushSecret {
	ps := g.PushSecret(name, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Selector = v1alpha1.PushSelector{GeneratorRef: &v1alpha1.StoreRef{Kind: "FakeGenerator", Name: "gen"}}
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("username", name+"-${name}", "")}
	})
	for _, f := range change {
		f(ps)
	}
	return ps
}

// TestPushGenerated follows a credential generated for a store. It must stay the same, be rotated on request, and be
// deleted with the object. The previous one must be revoked when the store has the new one.
func TestPushGenerated(t *testing.T) {
	g := newGenEnv(t, leased)
	remote := g.Server.Backend("main")
	g.Create(g.generatedPush("db", testenv.PushDeletes))
	g.WantPushed("db", v1alpha1.ReasonSecretSynced)
	live := func(why string, n int) string {
		t.Helper()
		var users []string
		g.Eventually(func() string {
			if users = g.Backend.Live(); len(users) != n {
				return fmt.Sprintf("%s: live are %q", why, users)
			}
			return ""
		})
		return users[len(users)-1]
	}
	first := live("one value is made", 1)
	g.WantRemote(remote, "db-db", first)
	g.restart()
	g.pass(0)
	testenv.Update(g.Client, g.GetPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "2h" })
	g.WantPushed("db", v1alpha1.ReasonSecretSynced)
	g.WantRemote(remote, "db-db", first)

	open := remote.Inject(fake.Fault{Call: fake.CallUpdate, Err: errUnavailable})
	testenv.Update(g.Client, g.GetPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	second := live("both live until the store has the new one", 2)
	g.Eventually(func() string {
		if m := g.WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "Unavailable") {
			return m
		}
		return ""
	})
	g.pass(0)
	live("nothing is revoked meanwhile", 2)
	open()
	g.WantRemote(remote, "db-db", second)
	g.wantLive(second)
	if n := g.Backend.Count(fake.CallGenerate); n != 2 {
		t.Errorf("%d credentials were made, want 2", n)
	}
	g.Delete(g.GetPush("db"))
	g.WantRemote(remote, "db-db", "")
	g.wantLive()
	g.wantNoParts()
}

// TestPushGeneratedIfNotExists uses the store as the source of truth: existing values win over generated ones.
func TestPushGeneratedIfNotExists(t *testing.T) {
	g := newServedEnv(t)
	remote := g.BackendOf("main")
	once := func(ps *v1alpha1.PushSecret) { ps.Spec.UpdatePolicy = v1alpha1.UpdateIfNotExists }
	g.Create(g.generatedPush("db", once))
	g.WantPushed("db", v1alpha1.ReasonSecretSynced)
	first := string(must(remote.Value("db-db")))
	g.Delete(g.GetPush("db"))
	g.wantNoParts()
	g.Create(g.generatedPush("db", once))
	g.WantPushed("db", v1alpha1.ReasonSecretAlreadyExists)
	g.WantRemote(remote, "db-db", first)
	if n := g.Backend.Count(fake.CallGenerate); n != 2 {
		t.Errorf("%d values were made, want 2: the part was deleted with its object", n)
	}
}

func must(b []byte, ok bool) []byte {
	if !ok {
		return []byte("there is none")
	}
	return b
}

// TestPushGeneratedTemplate pushes the output of a template with generated values.
func TestPushGeneratedTemplate(t *testing.T) {
	g := newServedEnv(t)
	g.Create(g.generatedPush("db", func(ps *v1alpha1.PushSecret) {
		ps.Spec.Template = &v1alpha1.Template{Data: map[string]string{"url": "db://{{ .username }}@db"}}
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("url", "db", "")}
	}))
	g.WantPushed("db", v1alpha1.ReasonSecretSynced)
	g.WantRemote(g.BackendOf("main"), "db", "db://u000001@db")
}

// TestPushGenerateFails checks that the status reports why nothing is pushed, also for a generator that is named as a store.
func TestPushGenerateFails(t *testing.T) {
	g := newServedEnv(t)
	remove := g.Backend.Inject(fake.Fault{Call: fake.CallGenerate, Err: errDenied})
	g.Create(g.generatedPush("db"))
	if m := g.WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, `Denied: FakeGenerator "gen": `) {
		t.Errorf("Ready says %q", m)
	}
	remove()
	g.WantPushed("db", v1alpha1.ReasonSecretSynced)
	g.Create(g.generatedPush("none", func(ps *v1alpha1.PushSecret) { ps.Spec.Selector.GeneratorRef.Name = "none" }))
	if m := g.WantPushed("none", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, "NotFound: FakeGenerator") || !strings.Contains(m, `/none" does not exist`) {
		t.Errorf("Ready says %q", m)
	}
	g.Create(g.generatedPush("store", func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeGenerator", Name: "gen"}}
	}))
	if m := g.WantPushed("store", v1alpha1.ReasonInvalidSpec); !strings.HasPrefix(m, `FakeGenerator "gen" is a generator`) {
		t.Errorf("Ready says %q", m)
	}
}

func sorted(names ...string) []string { return slices.Sorted(slices.Values(names)) }

// TestStaleCaches runs an operator with an outdated cache together with one that is up to date and has already rotated.
// The outdated one must not rotate again.
func TestStaleCaches(t *testing.T) {
	t.Parallel()
	never := func(es *v1alpha1.ExternalSecret) { es.Spec.Target.CleanupPolicy = v1alpha1.CleanupNever }
	rotate := func(g *genEnv) { testenv.Update(g.Client, g.Get("db"), testenv.Request("2")) }
	cases := map[string]struct {
		reason, resource string
		rotate           func(g *genEnv)
		// keeps is true if the value stays.
		keeps bool
	}{
		"Objects": {"It sees an older request than the one that was served.", "externalsecrets", rotate, false},
		"Parts":   {"It does not see that the request was served.", "secrets", rotate, false},
		"Generators": {"It sees the former spec of the generator.", "fakegenerators", func(g *genEnv) {
			testenv.Update(g.Client, g.generator("gen"), func(o *fakev1.FakeGenerator) { o.Spec.Prefix = "v" })
		}, false},
		"Owners": {"It sees a deleted object, and must not give the part back to it.", "externalsecrets", func(g *genEnv) {
			g.Delete(g.Get("db"))
			g.Create(g.generated("db", testenv.Request("1"), never))
			g.WantReady("db", v1alpha1.ReasonSecretSynced)
			g.wantDelivered("db")
		}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := newGenEnv(t, leased)
			g.Create(g.generated("db", testenv.Request("1"), never))
			g.WantReady("db", v1alpha1.ReasonSecretSynced)
			g.wantDelivered("db")
			first := g.user("db")
			g.Stop()

			behind := &genEnv{Env: g.SecondOperator()}
			l := testenv.NewLag(tc.resource)
			var partReads, writes atomic.Int32 // by the outdated operator, of the part
			behind.Config.Wrap(l.Wrap)
			// Two operators that see a request at the same time may both serve it, and one of them revokes its value.
			request := testenv.NewLag("externalsecrets")
			behind.Config.Wrap(request.Wrap)
			behind.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/secrets/db-part-") {
						partReads.Add(1)
					}
					if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/secrets/db-part-") {
						writes.Add(1)
					}
					return next.RoundTrip(r)
				})
			})
			behind.Start(testenv.Ahead(&g.ahead))
			defer func() { behind.Stop() }()
			g.Create(g.generator("warm", leased))
			warm := g.made("warm", func(es *v1alpha1.ExternalSecret) { es.Spec.DataFrom[0].SourceRef.GeneratorRef.Name = "warm" }) // Fills its caches.
			g.wantDelivered("warm")
			defer l.Hold(false)
			defer request.Hold(false)
			l.Hold(true)
			request.Hold(tc.resource == "secrets")
			partReads.Store(0)
			writes.Store(0)
			g.Start(testenv.Ahead(&g.ahead))

			tc.rotate(g)
			second, made := first, 2
			if !tc.keeps {
				second, made = g.wantUser("db", tc.reason, not(first)), 3
			}
			g.wantLive(sorted(warm, second)...)
			request.Hold(false)
			g.pass(0)
			g.Eventually(func() string {
				if partReads.Load() == 0 {
					return "the outdated operator has not read the part"
				}
				return ""
			})
			if n := writes.Load(); tc.keeps && n > 0 {
				t.Errorf("%s\nthe outdated operator has written the part %d times", tc.reason, n)
			}
			l.Hold(false)
			g.WantReady("db", v1alpha1.ReasonSecretSynced)
			g.wantLive(sorted(warm, second)...)
			if diff := cmp.Diff(second, g.user("db")); diff != "" {
				t.Errorf("%s\nthe Secret: -want, +got:\n%s", tc.reason, diff)
			}
			if n := g.Backend.Count(fake.CallGenerate); n != made {
				t.Errorf("%s\n%d credentials were made, want %d", tc.reason, n, made)
			}
		})
	}
}

// TestPushDryRunGeneratesNothing makes a dry run with a generator. It must make no values, and compare those that exist.
func TestPushDryRunGeneratesNothing(t *testing.T) {
	g := newServedEnv(t, leased)
	dryRun := func(on bool) {
		testenv.Update(g.Client, g.GetPush("db"), func(ps *v1alpha1.PushSecret) { ps.Spec.DryRun = on })
	}
	g.Create(g.generatedPush("db", func(ps *v1alpha1.PushSecret) { ps.Spec.DryRun = true }))
	if m := g.WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "none are generated while spec.dryRun is true") {
		t.Errorf("Ready says %q", m)
	}
	g.Create(g.generatedPush("later"))
	g.WantPushed("later", v1alpha1.ReasonSecretSynced)
	if live := g.Backend.Live(); len(live) != 1 {
		t.Errorf("live are %q, want only the value of the object that is pushed", live)
	}
	dryRun(false)
	g.WantPushed("db", v1alpha1.ReasonSecretSynced)
	before := g.Backend.Live()
	dryRun(true)
	g.WantPushed("db", v1alpha1.ReasonDryRun)
	if diff := cmp.Diff(before, g.Backend.Live()); diff != "" {
		t.Errorf("a dry run changed the generated values: -before, +now:\n%s", diff)
	}
	if d := g.GetPush("db").Status.Stores[0].Difference; d == nil || len(d.Entries) > 0 {
		t.Errorf("the values that were pushed differ: %+v", d)
	}
}
