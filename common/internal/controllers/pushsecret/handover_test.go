package pushsecret_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPushHandOver deletes objects whose remote secrets another PushSecret pushes by now, as after a renamed manifest.
// Remote secrets that are in use must stay.
func TestPushHandOver(t *testing.T) {
	e := testenv.NewServed(t)
	other := e.BackendOf("other")
	e.Create(e.Store("twin", "main", func(s *fakev1.FakeStore) { s.Spec.ValidationInterval = "2h" }))
	e.Create(e.Store("other", "other"))
	e.Source("source", map[string]string{"password": "one"})
	to := func(data ...v1alpha1.PushData) func(*v1alpha1.PushSecret) {
		return func(ps *v1alpha1.PushSecret) { ps.Spec.Data = data }
	}
	by := func(store string) func(*v1alpha1.PushSecret) {
		return func(ps *v1alpha1.PushSecret) { ps.Spec.StoreRefs[0].Name = store }
	}
	never := func(ps *v1alpha1.PushSecret) { ps.Spec.RefreshInterval = "0" }
	all := func(ps *v1alpha1.PushSecret) { ps.Spec.Data, ps.Spec.DataTo = nil, []v1alpha1.PushDataTo{{}} }
	e.Create(e.PushSecret("old", testenv.PushDeletes, to(
		testenv.PushData("password", "same", ""), testenv.PushData("password", "twin", ""), testenv.PushData("password", "object", "a.b"),
		testenv.PushData("password", "password", ""), testenv.PushData("password", "elsewhere", ""), testenv.PushData("password", "unused", ""),
		testenv.PushData("password", "alias", ""),
	)))
	e.WantPushed("old", v1alpha1.ReasonSecretSynced)
	e.Create(e.PushSecret("new", testenv.PushDeletes, never, to(testenv.PushData("password", "same", ""), testenv.PushData("password", "object", "a.b"))))
	e.Create(e.PushSecret("by-twin", never, by("twin"), to(testenv.PushData("password", "twin", ""))))
	e.Create(e.PushSecret("by-data-to", never, all))
	other.Put("elsewhere", []byte("theirs"))
	other.Delete("elsewhere")
	other.Put("elsewhere", []byte("one"))
	e.Create(e.PushSecret("by-other", never, by("other"), to(testenv.PushData("password", "elsewhere", ""))))
	for _, name := range []string{"new", "by-twin", "by-data-to", "by-other"} {
		e.WantPushed(name, v1alpha1.ReasonSecretSynced)
	}
	spelledOtherwise(e, "alias")
	if err := e.API.Delete(e.Ctx, e.GetPush("old")); err != nil {
		t.Fatal(err)
	}
	wantPushDeleted(e, "old")
	got := map[string]string{}
	for _, key := range []string{"same", "twin", "object", "password", "elsewhere", "unused", "alias"} {
		got[key] = testenv.Remote(e.Backend, key)
	}
	want := map[string]string{"same": "one", "twin": "one", "object": `{"a":{"b":"one"}}`, "password": "one", "elsewhere": "", "unused": "", "alias": "one"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is left: -want, +got:\n%s", diff)
	}
	e.Eventually(func() string {
		var list corev1.EventList
		if err := e.API.List(e.Ctx, &list, client.InNamespace(e.NS)); err != nil {
			return err.Error()
		}
		for _, ev := range list.Items {
			if ev.Reason == "LeftBehind" && strings.Contains(ev.Message, "another PushSecret") {
				return ""
			}
		}
		return fmt.Sprintf("none of %d events reports that another PushSecret uses the secret that stays", len(list.Items))
	})
}

// spelledOtherwise creates an object whose status records a push to a remote secret of the object "old", with the key
// spelled differently. This happens at AWS if one store has a prefix and the other names the ARN.
func spelledOtherwise(e *testenv.Env, key string) {
	e.Helper()
	var entry v1alpha1.PushEntryStatus
	for _, entry = range e.GetPush("old").Status.Stores[0].Entries {
		if entry.RemoteKey == key {
			break
		}
	}
	entry.RemoteKey = "arn:" + key
	ps := e.PushSecret("by-"+key, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Suspend, ps.Spec.Data = true, []v1alpha1.PushData{testenv.PushData("password", entry.RemoteKey, "")}
	})
	e.Create(ps)
	e.WantPushed(ps.Name, v1alpha1.ReasonSuspended)
	stored := e.GetPush(ps.Name)
	stored.Status.Stores = []v1alpha1.PushStoreStatus{{
		APIVersion: fakev1.Group + "/v1alpha1", Kind: "FakeStore", Name: "store", Entries: []v1alpha1.PushEntryStatus{entry},
	}}
	if err := e.API.Status().Update(e.Ctx, stored); err != nil {
		e.Fatal(err)
	}
}

// TestPushOldValue blocks a push in a write while the Secret changes and another process, the new leader, pushes the
// new value. The old value must never be written.
// TestPushOldValue blocks a push in a write while the Secret changes and another process, the new leader, pushes the
// new value. The old value must never be written.
func TestPushOldValue(t *testing.T) {
	e := testenv.NewServed(t)
	e.Backend.Put("db", []byte("zero"))
	e.Source("source", map[string]string{"password": "one"})
	resume := e.Backend.Inject(fake.Fault{Call: fake.CallUpdate, Hang: true})
	e.Create(e.PushSecret("db"))
	if err := e.Backend.Wait(e.Ctx, 1, fake.CallUpdate); err != nil {
		t.Fatal(err)
	}
	e.Source("source", map[string]string{"password": "two"})
	e.Backend.Put("db", []byte("two"))
	resume()
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.WantRemote(e.Backend, "db", "two")
	if v := e.Backend.Versions("db"); len(v) != 2 {
		t.Errorf("versions %v, want the two that others wrote", v)
	}
}

// TestPushDeletedStatus deletes an object that has a finalizer of another controller. The status must report that
// everything is removed.
func TestPushDeletedStatus(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) { ps.Finalizers = []string{"example.com/held"} }))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	ps := e.GetPush("db")
	if err := e.API.Delete(e.Ctx, ps); err != nil {
		t.Fatal(err)
	}
	e.Eventually(func() string { return cmp.Diff([]string{"example.com/held"}, e.GetPush("db").Finalizers) })
	if v := testenv.Remote(e.Backend, "db"); v != "" {
		t.Errorf("the remote secret is %q", v)
	}
	is := e.GetPush("db")
	ready := meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady)
	synced := meta.FindStatusCondition(is.Status.Stores[0].Conditions, v1alpha1.ConditionSynced)
	want := []string{v1alpha1.ReasonSecretDeleted, v1alpha1.ReasonSecretDeleted}
	if diff := cmp.Diff(want, []string{ready.Reason, synced.Reason}); diff != "" {
		t.Errorf("Ready and Synced: -want, +got:\n%s", diff)
	}
	if n := len(is.Status.Stores[0].Entries); n > 0 {
		t.Errorf("the status still lists %d remote secrets", n)
	}
	testenv.Update(e.Client, ps, func(ps *v1alpha1.PushSecret) { ps.Finalizers = nil })
}
