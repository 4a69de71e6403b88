package pushsecret_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestSyncWindows has an object whose comparison waits for a window. Meanwhile another client has changed the remote secret.
func TestSyncWindows(t *testing.T) {
	var ahead atomic.Int64
	e := testenv.NewIdle(t)
	e.Start(testenv.Ahead(&ahead), operator.WithRandom(func() float64 { return 0 }))
	opens := time.Now().Add(6 * time.Hour).Truncate(time.Minute)
	source := e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", func(ps *v1alpha1.PushSecret) { ps.Spec.SyncWindows = testenv.Opens(opens) }))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	key := e.GetPush("db").Spec.Data[0].Match.RemoteRef.RemoteKey
	// walk makes the operator look at the object, because the queue uses the real time.
	walk := func() {
		testenv.Update(e.Client, e.Store("store", "main"), func(s *fakev1.FakeStore) { s.Labels = map[string]string{"walk": testenv.RandomName()} })
	}
	wantWindow := func(want time.Time) {
		t.Helper()
		e.Eventually(func() string { return testenv.SameTime(want, e.GetPush("db").Status.Stores[0].NextWindowTime) })
	}
	wantWindow(time.Time{})

	e.Backend.Put(key, []byte("drifted"))
	observed := e.Backend.Count(fake.CallObserve)
	ahead.Store(int64(2 * time.Hour))
	walk()
	wantWindow(opens)
	e.WaitForEvents()
	if n := e.Backend.Count(fake.CallObserve) - observed; n > 0 {
		t.Errorf("%d comparisons outside of the window, want none", n)
	}
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	if problem := testenv.SameTime(opens, e.GetPush("db").Status.Stores[0].NextRefreshTime); problem != "" {
		t.Errorf("the time of the next comparison while the window is closed: %s", problem)
	}

	// A change of the Secret is pushed at once.
	testenv.Update(e.Client, source, func(s *corev1.Secret) { s.Data["password"] = []byte("two") })
	e.WantRemote(e.Backend, key, "two")
	wantWindow(time.Time{})

	e.Backend.Put(key, []byte("drifted"))
	ahead.Add(int64(2 * time.Hour))
	walk()
	wantWindow(opens)
	ahead.Store(int64(time.Until(opens.Add(-2 * time.Second))))
	walk()
	e.Eventually(func() string {
		if got := testenv.Remote(e.Backend, key); got != "two" {
			return fmt.Sprintf("the remote secret is %q after the opening", got)
		}
		return ""
	})
	wantWindow(time.Time{})
	if next := e.GetPush("db").Status.Stores[0].NextRefreshTime; !next.After(opens) {
		t.Errorf("the time of the next comparison is %s, and the window has opened at %s", next, opens)
	}
}
