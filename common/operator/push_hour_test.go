package operator_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPushHour lets an hour pass for 500 objects that are compared every twenty minutes: nothing is written to
// the store, not a single version.
func TestPushHour(t *testing.T) {
	const objects = 500
	var clock atomic.Int64
	e := newIdleEnv(t)
	e.startBy(&clock)
	e.source("source", map[string]string{"password": "one"})
	name := func(i int) string { return fmt.Sprintf("db-%03d", i) }
	for i := range objects {
		e.create(e.pushSecret(name(i), func(ps *v1alpha1.PushSecret) {
			ps.Spec.RefreshInterval = "20m"
			ps.Spec.Data = append(ps.Spec.Data, pushData("password", name(i)+"-object", "a.b"))
		}))
	}
	synced := func() string {
		var list v1alpha1.PushSecretList
		if err := api.List(e.ctx, &list, client.InNamespace(e.ns)); err != nil {
			return err.Error()
		}
		for _, ps := range list.Items {
			if !meta.IsStatusConditionTrue(ps.Status.Conditions, v1alpha1.ConditionReady) {
				return ps.Name + " is not ready"
			}
		}
		return ""
	}
	e.eventually(synced)
	writes := e.backend.Writes()
	if writes != 2*objects {
		t.Errorf("%d writes at first, want %d", writes, 2*objects)
	}
	for round := range 3 {
		observed := e.backend.Count(fake.CallObserve)
		clock.Add(int64(22*time.Minute + time.Second)) // The interval, and a tenth of jitter.
		// What waits by the real clock looks at the other one when its store has news.
		update(e, e.store("store", "main"), func(s *fakev1.FakeStore) { s.Labels = map[string]string{"round": fmt.Sprint(round)} })
		e.eventually(func() string {
			if n := e.backend.Count(fake.CallObserve) - observed; n < 2*objects {
				return fmt.Sprintf("%d of %d remote secrets were compared", n, 2*objects)
			}
			return ""
		})
	}
	if n := e.backend.Writes() - writes; n > 0 {
		t.Errorf("%d writes in an hour in which nothing changed", n)
	}
	for i := range objects {
		for _, key := range []string{name(i), name(i) + "-object"} {
			if v := e.backend.Versions(key); len(v) != 1 {
				t.Errorf("%s has versions %v", key, v)
			}
		}
	}
}

// startBy runs an operator whose clock is ahead by what a test says.
func (e *env) startBy(ahead *atomic.Int64) {
	e.Helper()
	e.run(e.operator(append(e.kinds(), operator.WithClock(func() time.Time {
		return time.Now().Add(time.Duration(ahead.Load()))
	}))...))
}

// TestPushHeldForAWhile deletes a namespace whose object has to remove something from a store that fails. It
// is held for ten minutes and no longer.
func TestPushHeldForAWhile(t *testing.T) {
	var clock atomic.Int64
	e := newIdleEnv(t)
	held := e.store("held", "main", func(s *fakev1.FakeStore) { s.Finalizers = []string{"example.com/held"} })
	e.create(held) // It outlives the object.
	e.startBy(&clock)
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db", pushDeletes, func(ps *v1alpha1.PushSecret) { ps.Spec.StoreRefs[0].Name = "held" }))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	e.backend.Inject(fake.Fault{Call: fake.CallDelete, Err: provider.NewError(provider.Unavailable, "down")})
	if err := api.Delete(e.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}); err != nil {
		t.Fatal(err)
	}
	e.eventually(func() string {
		if n := e.backend.Count(fake.CallDelete); n < 2 {
			return fmt.Sprintf("the removal was tried %d times", n)
		}
		return ""
	})
	e.getPush("db")
	clock.Add(int64(11 * time.Minute))
	e.wantPushGone("db")
	if v := remote(e.backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left behind", v)
	}
	update(e, held, func(s *fakev1.FakeStore) { s.Finalizers = nil })
}

// TestPushCredentialsGone deletes a namespace whose credentials go first: the object is let go at once.
func TestPushCredentialsGone(t *testing.T) {
	e := newIdleEnv(t)
	e.secretWith("password", "right")
	locked := e.server.Backend("locked")
	locked.SetPassword("right")
	e.create(e.store("locked", "locked", withAuth))
	e.start()
	e.source("source", map[string]string{"password": "one"})
	e.create(e.pushSecret("db", pushDeletes, func(ps *v1alpha1.PushSecret) { ps.Spec.StoreRefs[0].Name = "locked" }))
	e.wantPushed("db", v1alpha1.ReasonSecretSynced)
	if err := api.Delete(e.ctx, &corev1.Secret{ObjectMeta: e.meta("credentials")}); err != nil {
		t.Fatal(err)
	}
	e.wantStore("locked", v1alpha1.ReasonStoreInvalidSpec)
	if err := api.Delete(e.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns}}); err != nil {
		t.Fatal(err)
	}
	e.wantPushGone("db")
	if v := remote(locked, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left behind", v)
	}
}

func (e *env) wantPushGone(name string) {
	e.Helper()
	e.eventually(func() string {
		if err := api.Get(e.ctx, types.NamespacedName{Namespace: e.ns, Name: name}, &v1alpha1.PushSecret{}); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
}

// TestPushHeldByAbsentModule deletes an object that a module holds which does not run: after ten minutes an
// event says so, with the command that lets it go.
func TestPushHeldByAbsentModule(t *testing.T) {
	var clock atomic.Int64
	e := newIdleEnv(t)
	e.startBy(&clock)
	const absent = "vault.direct-secrets.io/pushsecret"
	ps := e.pushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Finalizers = []string{absent}
		ps.Spec.StoreRefs[0].Kind = "VaultKV"
	})
	e.create(ps)
	if err := api.Delete(e.ctx, ps); err != nil {
		t.Fatal(err)
	}
	clock.Add(int64(11 * time.Minute))
	update(e, ps, func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true }) // Any news has it looked at by that clock.
	e.eventually(func() string {
		var list corev1.EventList
		if err := api.List(e.ctx, &list, client.InNamespace(e.ns)); err != nil {
			return err.Error()
		}
		for _, ev := range list.Items {
			if ev.Reason == "Held" && strings.Contains(ev.Message, "kubectl patch pushsecret -n "+e.ns+" db ") && strings.Contains(ev.Message, absent) {
				return ""
			}
		}
		return fmt.Sprintf("none of %d events says that the object is held", len(list.Items))
	})
	update(e, ps, func(ps *v1alpha1.PushSecret) { ps.Finalizers = nil })
}
