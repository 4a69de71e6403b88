package generation_test

import (
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestSyncWindows has an object whose rotation waits for a window. The lease of its values is renewed meanwhile.
func TestSyncWindows(t *testing.T) {
	g := newGenEnv(t, leased, func(o *fakev1.FakeGenerator) { o.Spec.RotationInterval = "2h" })
	opens := time.Now().Add(5*time.Hour + 30*time.Minute).Truncate(time.Minute)
	user := g.made("db", func(es *v1alpha1.ExternalSecret) { es.Spec.SyncWindows = testenv.Opens(opens) })
	g.wantDelivered("db")
	wantWindow := func(want time.Time) {
		t.Helper()
		g.Eventually(func() string {
			parts := g.Get("db").Status.Parts
			if len(parts) != 1 {
				return "there is no part"
			}
			return testenv.SameTime(want, parts[0].NextWindowTime)
		})
	}
	wantWindow(time.Time{})
	for range 4 {
		g.pass(45 * time.Minute)
		g.wantRenewed()
	}
	wantWindow(opens)
	g.wantLive(user)
	g.wantUser("db", "rotationInterval has passed, but the window is closed", func(u string) bool { return u == user })

	// A request does not wait.
	testenv.Update(g.Client, g.Get("db"), testenv.Request("1"))
	second := g.wantUser("db", "a request makes new values", not(user))
	g.wantDelivered("db")
	wantWindow(time.Time{})

	// The rotation waits again, until the window is open.
	for range 3 {
		g.pass(45 * time.Minute)
		g.wantRenewed()
	}
	g.wantLive(second)
	g.wantUser("db", "the window is closed for another quarter of an hour", func(u string) bool { return u == second })
	g.pass(45 * time.Minute)
	g.wantUser("db", "the window is open", not(second))
	wantWindow(time.Time{})
	g.wantDelivered("db")
}
