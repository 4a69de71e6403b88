package pushsecret_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

const canary = "c4n4ry"

func dryRun(ps *v1alpha1.PushSecret) { ps.Spec.DryRun = true }

// setDryRun changes spec.dryRun and returns the object.
func setDryRun(e *testenv.Env, name string, on bool, change ...func(*v1alpha1.PushSecret)) *v1alpha1.PushSecret {
	e.Helper()
	return testenv.Update(e.Client, e.GetPush(name), func(ps *v1alpha1.PushSecret) {
		ps.Spec.DryRun = on
		for _, f := range change {
			f(ps)
		}
	})
}

// wantDifference waits until a dry run reports entries for a store, as "Action key" or "Action key property".
func wantDifference(e *testenv.Env, name, store string, want ...string) {
	e.Helper()
	e.Eventually(func() string {
		ps := e.GetPush(name)
		for _, s := range ps.Status.Stores {
			c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
			if s.Name != store || s.Difference == nil || c == nil || c.ObservedGeneration != ps.Generation {
				continue
			}
			var got []string
			for _, d := range s.Difference.Entries {
				got = append(got, strings.TrimSpace(string(d.Action)+" "+d.RemoteKey+" "+d.Property))
			}
			return cmp.Diff(want, got)
		}
		return "no difference is reported"
	})
	if raw, err := json.Marshal(e.GetPush(name).Status); err != nil || strings.Contains(string(raw), canary) {
		e.Errorf("%v: the status holds a value: %s", err, raw)
	}
}

// TestPushDryRun follows an object from a dry run to a push, and back to a dry run.
func TestPushDryRun(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": canary + "1", "user": canary + "2"})
	e.Backend.Put("adopted", []byte(canary))
	e.Backend.Put("same", []byte(canary+"1"))
	e.Backend.Put("object", []byte(`{"a":"`+canary+`1","b":"`+canary+`"}`))
	data := []v1alpha1.PushData{
		testenv.PushData("password", "new", ""), testenv.PushData("password", "adopted", ""), testenv.PushData("password", "same", ""),
		testenv.PushData("password", "object", "a"), testenv.PushData("password", "object", "b"), testenv.PushData("user", "object", "c.d"),
	}
	e.Create(e.PushSecret("db", testenv.PushDeletes, dryRun, func(ps *v1alpha1.PushSecret) { ps.Spec.Data = data }))
	if m := e.WantPushed("db", v1alpha1.ReasonDryRun); !strings.Contains(m, "nothing is written") {
		t.Errorf("Ready says %q", m)
	}
	wantDifference(e, "db", "store", "Update adopted", "Create new", "Update object b", "Create object c.d")
	ps := e.GetPush("db")
	if s := ps.Status.Stores[0]; len(s.Entries) > 0 || s.ObservedGeneration != 0 || s.RefreshTime != nil || len(ps.Finalizers) > 0 {
		t.Errorf("a dry run left traces of a push: finalizers %q, %+v", ps.Finalizers, s)
	}
	for kind, want := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionUnknown, v1alpha1.ConditionReconciling: "", v1alpha1.ConditionStalled: ""} {
		if c := meta.FindStatusCondition(ps.Status.Conditions, kind); c == nil && want != "" || c != nil && c.Status != want {
			t.Errorf("condition %s is %+v, want %q", kind, c, want)
		}
	}
	e.Source("source", map[string]string{"password": canary + "3", "user": canary + "2"})
	wantDifference(e, "db", "store", "Update adopted", "Create new", "Update object a", "Update object b", "Create object c.d", "Update same")
	if n := e.Backend.Writes(); n > 0 {
		t.Errorf("a dry run made %d writes", n)
	}

	setDryRun(e, "db", false)
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.WantRemote(e.Backend, "new", canary+"3")
	pushed := e.GetPush("db").Status.Stores[0]
	if pushed.Difference != nil || len(pushed.Entries) != len(data) {
		t.Errorf("after the push: %+v", pushed)
	}
	writes := e.Backend.Writes()
	ps = setDryRun(e, "db", true, func(ps *v1alpha1.PushSecret) { ps.Spec.Data = data[1:5] })
	e.WantPushed("db", v1alpha1.ReasonDryRun)
	wantDifference(e, "db", "store", "Delete new", "Delete object c.d")
	if n := e.Backend.Writes(); n != writes {
		t.Errorf("a dry run after a push made %d writes", n-writes)
	}
	is := e.GetPush("db")
	if diff := cmp.Diff([]any{pushed.Entries, ps.Finalizers}, []any{is.Status.Stores[0].Entries, is.Finalizers}); diff != "" {
		t.Errorf("what is recorded: -before, +now:\n%s", diff)
	}

	// A removal that a dry run has reported is made by the next push.
	setDryRun(e, "db", false)
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.WantRemote(e.Backend, "new", "")
	e.WantRemote(e.Backend, "object", `{"a":"`+canary+`3","b":"`+canary+`3"}`)
}

// TestPushDryRunIsDeleted deletes an object in a dry run after it pushed. The object must be deleted, and its
// remote secret must stay.
func TestPushDryRunIsDeleted(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	ps := setDryRun(e, "db", true)
	e.WantPushed("db", v1alpha1.ReasonDryRun)
	e.Delete(ps)
	wantPushDeleted(e, "db")
	if v := testenv.Remote(e.Backend, "db"); v != "one" {
		t.Errorf("the remote secret is %q, want it unchanged", v)
	}
}

// TestPushDryRunFails makes dry runs that cannot compare everything. The condition must have the error, and the
// difference must name what would not be written. The dry run is repeated until it succeeds.
func TestPushDryRunFails(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": canary})
	repair := e.Backend.Inject(fake.Fault{Call: fake.CallObserve, Key: "denied", Err: provider.NewError(provider.Denied, "no")})
	e.Create(e.PushSecret("db", dryRun, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "denied", ""), testenv.PushData("password", "fine", "")}
	}))
	if m := e.WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, "Denied: ") || !strings.Contains(m, `"denied"`) {
		t.Errorf("Ready says %q", m)
	}
	wantDifference(e, "db", "store", "Fail denied", "Create fine")
	repair()
	wantDifference(e, "db", "store", "Create denied", "Create fine")
	e.WantPushed("db", v1alpha1.ReasonDryRun)
	if n := e.Backend.Writes(); n > 0 {
		t.Errorf("a dry run made %d writes", n)
	}
}

// TestPushDryRunKeepsStores takes a store out of the spec during a dry run, and puts it back. The status
// must keep the property created there, so that it is deleted with the object. A property has no mark of its own, so only the
// status knows who created it.
func TestPushDryRunKeepsStores(t *testing.T) {
	e := testenv.NewServed(t)
	e.BackendOf("second")
	e.Create(e.Store("second", "second"))
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "db", "a")}
	}))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	to := func(store string) func(*v1alpha1.PushSecret) {
		return func(ps *v1alpha1.PushSecret) { ps.Spec.StoreRefs[0].Name = store }
	}
	setDryRun(e, "db", true, to("second"))
	e.WantPushed("db", v1alpha1.ReasonDryRun)
	wantDifference(e, "db", "second", "Create db a")
	setDryRun(e, "db", true, to("store"))
	e.WantPushed("db", v1alpha1.ReasonDryRun)
	wantDifference(e, "db", "store")
	ps := setDryRun(e, "db", false)
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.Delete(ps)
	wantPushDeleted(e, "db")
	e.WantRemote(e.Backend, "db", "")
}

// TestPushDryRunOfTwoModules names stores of two modules. Neither module must write in a dry run, and both must write
// after it.
func TestPushDryRunOfTwoModules(t *testing.T) {
	e := testenv.New(t)
	other := e.Server.Backend("other")
	e.Create(&fakev1.OtherFakeStore{ObjectMeta: e.Meta("other"), Spec: fakev1.FakeStoreSpec{Backend: "other"}})
	e.Module("other", "other.direct-secrets.io", e.Server.OtherKinds())
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes, dryRun, func(ps *v1alpha1.PushSecret) {
		ps.Spec.StoreRefs = append(ps.Spec.StoreRefs, v1alpha1.PushStoreRef{Kind: "OtherFakeStore", Name: "other"})
	}))
	e.WantPushed("db", v1alpha1.ReasonDryRun)
	wantDifference(e, "db", "store", "Create db")
	wantDifference(e, "db", "other", "Create db")
	if n, m := e.Backend.Writes(), other.Writes(); n+m > 0 {
		t.Errorf("a dry run made %d and %d writes", n, m)
	}
	setDryRun(e, "db", false)
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.WantRemote(e.Backend, "db", "one")
	e.WantRemote(other, "db", "one")
}

// TestPushDryRunComparesRarely checks that a dry run reads the store once for each interval, change and refresh
// request, and that it does not read on its own status.
func TestPushDryRunComparesRarely(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", dryRun))
	e.WantPushed("db", v1alpha1.ReasonDryRun)
	testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "now"}
	})
	e.Eventually(func() string { return cmp.Diff("now", e.GetPush("db").Status.Stores[0].ObservedRefreshRequest) })
	e.Create(e.PushSecret("later"))
	e.WantPushed("later", v1alpha1.ReasonSecretSynced)
	reads := slices.DeleteFunc(e.Backend.Calls(fake.CallObserve), func(r fake.Record) bool { return r.Refs[0].Key != "db" })
	if len(reads) != 2 {
		t.Errorf("%d reads, want one at first and one on request", len(reads))
	}
}

// TestPushDryRunHoldsNothing deletes an object while another one names the same remote secret in a dry run. The dry run
// must not keep the remote secret from being deleted.
func TestPushDryRunHoldsNothing(t *testing.T) {
	e := testenv.NewServed(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.Create(e.PushSecret("next", testenv.PushDeletes, dryRun, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "db", "")}
	}))
	e.WantPushed("next", v1alpha1.ReasonDryRun)
	wantDifference(e, "next", "store")
	e.Delete(e.GetPush("db"))
	wantPushDeleted(e, "db")
	e.WantRemote(e.Backend, "db", "")
}
