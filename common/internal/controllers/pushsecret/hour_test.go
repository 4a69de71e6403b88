package pushsecret_test

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
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPushUnchangedHourWritesNothing simulates an hour for objects that are compared every twenty minutes. Nothing may be written to the
// store, not a single version.
func TestPushUnchangedHourWritesNothing(t *testing.T) {
	const objects = 10
	var clock atomic.Int64
	e := testenv.NewIdle(t)
	e.Start(testenv.Ahead(&clock))
	e.Source("source", map[string]string{"password": "one"})
	name := func(i int) string { return fmt.Sprintf("db-%03d", i) }
	for i := range objects {
		e.Create(e.PushSecret(name(i), func(ps *v1alpha1.PushSecret) {
			ps.Spec.RefreshInterval = "20m"
			ps.Spec.Data = append(ps.Spec.Data, testenv.PushData("password", name(i)+"-object", "a.b"))
		}))
	}
	synced := func() string {
		var list v1alpha1.PushSecretList
		if err := e.API.List(e.Ctx, &list, client.InNamespace(e.NS)); err != nil {
			return err.Error()
		}
		for _, ps := range list.Items {
			if !meta.IsStatusConditionTrue(ps.Status.Conditions, v1alpha1.ConditionReady) {
				return ps.Name + " is not ready"
			}
		}
		return ""
	}
	e.Eventually(synced)
	writes := e.Backend.Writes()
	if writes != 2*objects {
		t.Errorf("%d writes at first, want %d", writes, 2*objects)
	}
	for round := range 3 {
		observed := e.Backend.Count(fake.CallObserve)
		clock.Add(int64(22*time.Minute + time.Second)) // The interval plus a tenth of jitter.
		// Objects requeued by the real clock read the simulated clock when their store changes.
		testenv.Update(e.Client, e.Store("store", "main"), func(s *fakev1.FakeStore) { s.Labels = map[string]string{"round": fmt.Sprint(round)} })
		e.Eventually(func() string {
			if n := e.Backend.Count(fake.CallObserve) - observed; n < 2*objects {
				return fmt.Sprintf("%d of %d remote secrets were compared", n, 2*objects)
			}
			return ""
		})
	}
	if n := e.Backend.Writes() - writes; n > 0 {
		t.Errorf("%d writes in an hour in which nothing changed", n)
	}
	for i := range objects {
		for _, key := range []string{name(i), name(i) + "-object"} {
			if v := e.Backend.Versions(key); len(v) != 1 {
				t.Errorf("%s has versions %v", key, v)
			}
		}
	}
}

// TestPushReleasedAfterTenMinutes deletes a namespace whose object must remove a secret from a failing store. The object must be
// kept for ten minutes and no longer.
func TestPushReleasedAfterTenMinutes(t *testing.T) {
	var clock atomic.Int64
	e := testenv.NewIdle(t)
	held := e.Store("held", "main", func(s *fakev1.FakeStore) { s.Finalizers = []string{"example.com/held"} })
	e.Create(held) // The finalizer keeps the store longer than the object.
	e.Start(testenv.Ahead(&clock))
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) { ps.Spec.StoreRefs[0].Name = "held" }))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.Backend.Inject(fake.Fault{Call: fake.CallDelete, Err: provider.NewError(provider.Unavailable, "down")})
	if err := e.API.Delete(e.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.NS}}); err != nil {
		t.Fatal(err)
	}
	e.Eventually(func() string {
		if n := e.Backend.Count(fake.CallDelete); n < 2 {
			return fmt.Sprintf("the removal was attempted %d times", n)
		}
		return ""
	})
	e.GetPush("db")
	clock.Add(int64(11 * time.Minute))
	wantPushDeleted(e, "db")
	if v := testenv.Remote(e.Backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left behind", v)
	}
	testenv.Update(e.Client, held, func(s *fakev1.FakeStore) { s.Finalizers = nil })
}

// TestPushCredentialsDeleted deletes a namespace whose credentials are deleted first. The object must be released at once.
func TestPushCredentialsDeleted(t *testing.T) {
	e := testenv.NewServed(t)
	e.Credentials("password", "right")
	locked := e.BackendOf("locked")
	locked.SetPassword("right")
	e.Create(e.Store("locked", "locked", testenv.WithAuth))
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) { ps.Spec.StoreRefs[0].Name = "locked" }))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	if err := e.API.Delete(e.Ctx, &corev1.Secret{ObjectMeta: e.Meta("credentials")}); err != nil {
		t.Fatal(err)
	}
	e.WantStore("locked", v1alpha1.ReasonStoreInvalidSpec)
	if err := e.API.Delete(e.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.NS}}); err != nil {
		t.Fatal(err)
	}
	wantPushDeleted(e, "db")
	if v := testenv.Remote(locked, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it left behind", v)
	}
}

// wantPushDeleted waits until the API server no longer has an object.
func wantPushDeleted(e *testenv.Env, name string) {
	e.Helper()
	e.Eventually(func() string {
		if err := e.API.Get(e.Ctx, types.NamespacedName{Namespace: e.NS, Name: name}, &v1alpha1.PushSecret{}); !kerrors.IsNotFound(err) {
			return fmt.Sprintf("the object still exists: %v", err)
		}
		return ""
	})
}

// TestPushFinalizerOfStoppedModuleReported deletes an object with the finalizer of a module that does not run. After ten minutes an
// event must report it, with the command that removes the finalizer.
func TestPushFinalizerOfStoppedModuleReported(t *testing.T) {
	var clock atomic.Int64
	e := testenv.NewIdle(t)
	e.Start(testenv.Ahead(&clock))
	const absent = "vault.direct-secrets.io/pushsecret"
	ps := e.PushSecret("db", func(ps *v1alpha1.PushSecret) {
		ps.Finalizers = []string{absent}
		ps.Spec.StoreRefs[0].Kind = "VaultKV"
	})
	e.Create(ps)
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	clock.Add(int64(11 * time.Minute))
	testenv.Update(e.Client, ps, func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true }) // Any change triggers a reconcile with the new clock.
	e.Eventually(func() string {
		var list corev1.EventList
		if err := e.API.List(e.Ctx, &list, client.InNamespace(e.NS)); err != nil {
			return err.Error()
		}
		for _, ev := range list.Items {
			if ev.Reason == "Held" && strings.Contains(ev.Message, "kubectl patch pushsecrets.direct-secrets.io -n "+e.NS+" db ") && strings.Contains(ev.Message, absent) {
				return ""
			}
		}
		return fmt.Sprintf("none of %d events reports that the object is held", len(list.Items))
	})
	testenv.Update(e.Client, ps, func(ps *v1alpha1.PushSecret) { ps.Finalizers = nil })
}
