package generation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
)

// withoutRemoteChanges sets whether the next operator changes nothing outside the cluster.
func (g *genEnv) withoutRemoteChanges(on bool) {
	g.Flags = []func(*operator.Flags){func(f *operator.Flags) { f.NoRemoteChanges = on }}
}

// changes counts the calls that changed something at the provider.
func (g *genEnv) changes() int {
	return g.Backend.Count(fake.CallGenerate, fake.CallRenew, fake.CallCleanup)
}

// TestNoRemoteChanges restarts an operator with the flag. Credentials must be neither made, renewed, replaced nor
// revoked, each object must report that, and an operator without the flag must resume.
func TestNoRemoteChanges(t *testing.T) {
	g := newGenEnv(t, leased)
	was := g.made("db")
	g.wantDelivered("db")
	g.Stop()
	g.withoutRemoteChanges(true)
	g.Start(testenv.Ahead(&g.ahead))
	calls := g.changes()

	g.Create(g.generated("new"))
	if c := g.WantReady("new", v1alpha1.ReasonNoRemoteChanges); !strings.Contains(c.Message, `FakeGenerator "gen"`) || !strings.Contains(c.Message, "global.remoteChanges: true") {
		t.Errorf("Ready says %q, want the generator and the chart value", c.Message)
	}
	g.pass(50 * time.Minute)
	g.WantReady("db", v1alpha1.ReasonNoRemoteChanges)
	testenv.Update(g.Client, g.Get("db"), testenv.Request("now"))
	g.Eventually(func() string {
		if es := g.Get("db"); es.Status.ObservedGeneration != es.Generation || len(es.Status.Parts) != 1 || es.Status.Parts[0].Reason != v1alpha1.ReasonNoRemoteChanges {
			return fmt.Sprintf("the status is %+v", es.Status)
		}
		return ""
	})
	if n := g.changes(); n != calls {
		t.Errorf("%d changes at the provider with --no-remote-changes", n-calls)
	}
	g.wantLive(was)

	g.withoutRemoteChanges(false)
	g.restart()
	g.WantReady("new", v1alpha1.ReasonSecretSynced)
	g.wantUser("db", "a refresh was requested", not(was))
}

// TestNoRemoteChangesReleases deletes the part of one object, and another object, while the operator runs with the flag. The parts
// must be deleted at once, with an Event that lists the credentials, which must stay valid, also with a later operator.
func TestNoRemoteChangesReleases(t *testing.T) {
	g := newGenEnv(t, leased)
	was := []string{g.made("part"), g.made("object")}
	g.wantDelivered("part")
	g.wantDelivered("object")
	g.Stop()
	g.withoutRemoteChanges(true)
	g.Start(testenv.Ahead(&g.ahead))
	g.Delete(g.partOf("part"))
	g.Delete(g.Get("object"))
	g.wantNoParts()
	g.WantNote("part", "LeftBehind", "--no-remote-changes")
	g.WantNote("object", "LeftBehind", "--no-remote-changes")
	g.wantLive(was...)
	g.withoutRemoteChanges(false)
	g.restart()
	g.Create(g.generated("later"))
	g.WantReady("later", v1alpha1.ReasonSecretSynced)
	if live := g.Backend.Live(); !slices.Contains(live, was[0]) || !slices.Contains(live, was[1]) {
		t.Errorf("live are %q, want also %q", live, was)
	}
	if n := g.Backend.Count(fake.CallCleanup); n > 0 {
		t.Errorf("%d revocations", n)
	}
}

// TestNoRemoteChangesMakesTokens gets values of a generator that changes nothing at the provider. It must go on.
func TestNoRemoteChangesMakesTokens(t *testing.T) {
	e := testenv.NewIdle(t)
	g := &genEnv{Env: e}
	g.Backend = g.Server.Backend("gen")
	g.withoutRemoteChanges(true)
	g.Create(g.generator("gen"))
	var kinds []provider.Kind
	for _, k := range g.Server.GeneratorKinds() {
		kinds = append(kinds, k.ReadOnly())
	}
	g.Serve(kinds)
	g.made("db")
}
