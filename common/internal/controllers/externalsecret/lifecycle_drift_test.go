package externalsecret_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

// TestForeignChanges changes fields that the object does not own. The operator neither reads the provider nor writes
// the Secret.
func TestForeignChanges(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(e *env, s *corev1.Secret)
	}{
		"Key":       {"a key of another client", func(_ *env, s *corev1.Secret) { s.Data["foreign"] = []byte("keep") }},
		"Finalizer": {"a finalizer of another client", func(_ *env, s *corev1.Secret) { s.Finalizers = []string{"example.com/hold"} }},
		"Owner": {"an owner that controls nothing", func(e *env, s *corev1.Secret) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: e.configMap("owner")})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.Backend.Put("db", []byte("x"))
			e.synced("db")
			e.WantStore("store", v1alpha1.ReasonStoreValid)
			s := e.Secret("db")
			tc.change(e, s)
			e.Backend.Reset()
			if err := e.API.Update(e.Ctx, s); err != nil {
				t.Fatal(err)
			}
			e.WaitForEvents()
			e.wantUnchanged(s)
			if got := e.Backend.ReadsOf("db"); got != 0 {
				t.Errorf("%s: %d reads", tc.reason, got)
			}
			e.WantReady("db", v1alpha1.ReasonSecretSynced)
			if name == "Finalizer" {
				testenv.Update(e.Client, e.Secret("db"), func(s *corev1.Secret) { s.Finalizers = nil })
			}
		})
	}
}

// keepSpoiling changes or deletes a Secret whenever its value is right. It returns how often that was so, and a
// function that stops it.
func (e *env) keepSpoiling(name string, wrong func(*corev1.Secret)) (intactCount func() int, end func()) {
	ctx, cancel := context.WithCancel(e.Ctx)
	var n atomic.Int64
	var wg sync.WaitGroup
	tick := time.NewTicker(5 * time.Millisecond)
	wg.Go(func() {
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			s := &corev1.Secret{ObjectMeta: e.Meta(name)}
			if e.API.Get(ctx, client.ObjectKeyFromObject(s), s) != nil || string(s.Data["value"]) != "right" {
				continue
			}
			var err error
			if wrong == nil {
				err = e.API.Delete(ctx, s)
			} else {
				wrong(s)
				err = e.API.Update(ctx, s)
			}
			if err == nil {
				n.Add(1)
			}
		}
	})
	return func() int { return int(n.Load()) }, func() { cancel(); wg.Wait() }
}

// stepping is a clock that moves only when step is called.
type stepping struct{ now atomic.Pointer[time.Time] }

func newStepping() *stepping {
	c := &stepping{}
	now := time.Now()
	c.now.Store(&now)
	return c
}

func (c *stepping) time() time.Time { return *c.now.Load() }

func (c *stepping) step(d time.Duration) {
	now := c.time().Add(d)
	c.now.Store(&now)
}

// TestRevertBackoffTimes uses a stepping clock, so that no back-off ends by itself.
func TestRevertBackoffTimes(t *testing.T) {
	e := newIdleEnv(t)
	clock := newStepping()
	e.Serve(e.Server.Kinds(), operator.WithClock(clock.time))
	e.Backend.Put("db", []byte("right"))
	e.synced("db")
	intactCount, end := e.keepSpoiling("db", func(s *corev1.Secret) { s.Data["value"] = []byte("wrong") })
	defer end()
	wait := func(n int) {
		t.Helper()
		e.Eventually(func() string {
			if got := intactCount(); got != n {
				return cmp.Diff(n, got)
			}
			return ""
		})
		e.WantReady("db", v1alpha1.ReasonConflict)
		e.WaitForEvents()
		if got := intactCount(); got != n {
			t.Fatalf("the Secret was right %d times, want %d", got, n)
		}
	}
	// Once after the sync, and five reverts without delay.
	wait(6)
	for i, d := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		clock.step(d - time.Millisecond)
		e.triggerReconcile("db")
		wait(6 + i)
		clock.step(time.Millisecond)
		e.triggerReconcile("db")
		wait(7 + i)
	}
	// Ten minutes without a revert reset the back-off, so five reverts come without delay again.
	clock.step(10 * time.Minute)
	e.triggerReconcile("db")
	wait(6 + 3 + 5)

	end()
	clock.step(5 * time.Minute)
	e.triggerReconcile("db")
	e.WantSecret("db", "value", "right")
	e.WantReady("db", v1alpha1.ReasonSecretSynced)
}

// triggerReconcile triggers a reconcile by changing an annotation of a Secret.
func (e *env) triggerReconcile(name string) {
	e.Helper()
	testenv.Update(e.Client, e.Secret(name), func(s *corev1.Secret) { s.Annotations["poke"] = testenv.RandomName() })
}
