package contribution_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

// TestSyncWindows has an object that reads from stores of two modules. The reads of both wait for a window, also over a restart.
func TestSyncWindows(t *testing.T) {
	var ahead atomic.Int64
	e := newModulesEnv(t)
	start := func() {
		for _, m := range []string{claims, helps} {
			e.begin(m, testenv.Ahead(&ahead), operator.WithRandom(func() float64 { return 0 }))
		}
	}
	restart := func(at time.Time) {
		e.end(claims)
		e.end(helps)
		ahead.Store(int64(time.Until(at)))
		start()
	}
	start()
	opens := time.Now().Add(6 * time.Hour).Truncate(time.Minute)
	put := func(value string) {
		e.Backend.Put("db", []byte(value))
		e.other.Put("db", []byte(value))
	}
	put("old")
	e.Create(e.mixed("db", func(es *v1alpha1.ExternalSecret) { es.Spec.DataFrom, es.Spec.SyncWindows = nil, testenv.Opens(opens) }))
	e.wantSynced("db")
	wantWindows := func(want time.Time) {
		t.Helper()
		e.Eventually(func() string {
			st := e.Get("db").Status
			if len(st.Parts) != 1 {
				return "there is no part"
			}
			return testenv.SameTime(want, st.NextWindowTime) + testenv.SameTime(want, st.Parts[0].NextWindowTime)
		})
	}
	wantWindows(time.Time{})
	put("new")
	reads := e.Backend.ReadsOf("db") + e.other.ReadsOf("db")
	restart(time.Now().Add(2 * time.Hour))
	wantWindows(opens)
	e.WaitForEvents()
	if n := e.Backend.ReadsOf("db") + e.other.ReadsOf("db") - reads; n > 0 {
		t.Errorf("%d reads outside of the window, want none", n)
	}
	restart(opens.Add(time.Minute))
	e.Eventually(func() string {
		if d := e.Data("db"); d["value"] != "new" || d["other"] != "new" {
			return fmt.Sprintf("the Secret is %q in the window", d)
		}
		return ""
	})
	wantWindows(time.Time{})
	e.wantSynced("db")
}
