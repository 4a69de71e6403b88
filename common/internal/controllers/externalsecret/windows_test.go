package externalsecret_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

// TestSyncWindows has an object whose periodic refresh waits for a window, and provokes what does not wait.
func TestSyncWindows(t *testing.T) {
	t.Parallel()
	type state struct {
		*env
		ahead *atomic.Int64
		opens time.Time
		start func()
	}
	until := func(s state, at time.Time) { s.ahead.Store(int64(time.Until(at))) }
	cases := map[string]struct {
		reason string
		do     func(s state)
	}{
		"Opens": {"the refresh is made when the window opens", func(s state) {
			until(s, s.opens.Add(-2*time.Second))
			s.triggerReconcile("db") // The queue uses the real time.
		}},
		"Restart": {"the next process refreshes in the window what a former one has held back", func(s state) {
			s.Stop()
			until(s, s.opens.Add(time.Minute))
			s.start()
		}},
		"Drift": {"a Secret that was changed is restored", func(s state) {
			testenv.Update(s.Client, s.Secret("db"), func(secret *corev1.Secret) { secret.Data["value"] = []byte("wrong") })
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := state{newIdleEnv(t), &atomic.Int64{}, time.Now().Add(6 * time.Hour).Truncate(time.Minute), nil}
			s.start = func() {
				s.Serve(s.Server.Kinds(), testenv.Ahead(s.ahead), operator.WithRandom(func() float64 { return 0 }))
			}
			s.start()
			s.Backend.Put("db", []byte("0"))
			s.synced("db", func(es *v1alpha1.ExternalSecret) { es.Spec.SyncWindows = testenv.Opens(s.opens) })
			s.Eventually(func() string { return testenv.SameTime(time.Time{}, s.Get("db").Status.NextWindowTime) })
			s.Backend.Put("db", []byte("1"))
			reads := s.Backend.ReadsOf("db")

			s.ahead.Store(int64(2 * time.Hour))
			s.triggerReconcile("db")
			s.Eventually(func() string { return testenv.SameTime(s.opens, s.Get("db").Status.NextWindowTime) })
			s.WaitForEvents()
			if problem := testenv.SameTime(s.opens, s.Get("db").Status.NextRefreshTime); problem != "" {
				t.Errorf("the time of the next read while the window is closed: %s", problem)
			}
			if got := s.Backend.ReadsOf("db"); got != reads {
				t.Errorf("%d reads outside of the window, want none", got-reads)
			}
			s.WantReady("db", v1alpha1.ReasonSecretSynced)
			if diff := cmp.Diff(holds("value", "0"), s.dataOf("db")); diff != "" {
				t.Errorf("the Secret before the window: -want, +got:\n%s", diff)
			}

			tc.do(s)
			s.Eventually(func() string {
				if diff := cmp.Diff(holds("value", "1"), s.dataOf("db")); diff != "" {
					return tc.reason + "\nthe Secret: -want, +got:\n" + diff
				}
				st := s.Get("db").Status
				if st.NextRefreshTime == nil || !st.NextRefreshTime.After(time.Now().Add(time.Duration(s.ahead.Load()))) {
					return fmt.Sprintf("the time of the next read is %s, want one in the future", st.NextRefreshTime)
				}
				return testenv.SameTime(time.Time{}, st.NextWindowTime)
			})
			s.WantReady("db", v1alpha1.ReasonSecretSynced)
		})
	}
}
