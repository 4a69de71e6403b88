package pushsecret_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/operator"
)

// restart stops the operator and starts one with or without --no-remote-changes.
func restart(e *testenv.Env, noRemoteChanges bool) {
	e.Helper()
	e.Stop()
	e.Flags = []func(*operator.Flags){func(f *operator.Flags) { f.NoRemoteChanges = noRemoteChanges }}
	e.Start()
}

// TestNoRemoteChanges restarts an operator with the flag. It must compare and report, write nothing to the store, and
// push again without the flag.
func TestNoRemoteChanges(t *testing.T) {
	e := testenv.New(t)
	e.Source("source", map[string]string{"password": canary + "1"})
	e.Create(e.PushSecret("db", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	restart(e, true)
	e.Backend.Reset()

	e.Create(e.PushSecret("new", testenv.PushDeletes))
	if m := e.WantPushed("new", v1alpha1.ReasonNoRemoteChanges); !strings.Contains(m, "--no-remote-changes") || !strings.Contains(m, "global.remoteChanges: true") {
		t.Errorf("Ready says %q, want the flag and the chart value", m)
	}
	wantDifference(e, "new", "store", "Create new")
	e.Source("source", map[string]string{"password": canary + "2"})
	e.WantPushed("db", v1alpha1.ReasonNoRemoteChanges)
	wantDifference(e, "db", "store", "Update db")
	testenv.Update(e.Client, e.GetPush("db"), func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", "other", "")}
	})
	wantDifference(e, "db", "store", "Delete db", "Create other")
	ps := e.GetPush("new")
	for kind, want := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: metav1.ConditionUnknown, v1alpha1.ConditionReconciling: "", v1alpha1.ConditionStalled: ""} {
		if c := meta.FindStatusCondition(ps.Status.Conditions, kind); c == nil && want != "" || c != nil && c.Status != want {
			t.Errorf("condition %s is %+v, want %q", kind, c, want)
		}
	}
	if len(ps.Finalizers) > 0 {
		t.Errorf("finalizers of an object that created nothing: %q", ps.Finalizers)
	}
	if n := e.Backend.Writes(); n > 0 {
		t.Errorf("%d writes with --no-remote-changes", n)
	}

	restart(e, false)
	e.WantPushed("new", v1alpha1.ReasonSecretSynced)
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.WantRemote(e.Backend, "new", canary+"2")
	e.WantRemote(e.Backend, "db", "")
}

// TestNoRemoteChangesReleases deletes objects while the operator runs with the flag, also one whose store is deleted.
// They must be deleted at once, with an Event that lists the remote secrets, and an operator without the flag must not
// remove them later.
func TestNoRemoteChangesReleases(t *testing.T) {
	e := testenv.New(t)
	e.Source("source", map[string]string{"password": "one"})
	e.Create(e.PushSecret("db", testenv.PushDeletes, func(ps *v1alpha1.PushSecret) {
		ps.Spec.Data = append(ps.Spec.Data, testenv.PushData("password", "properties", "a"))
	}))
	e.Create(e.PushSecret("orphan", testenv.PushDeletes))
	e.WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.WantPushed("orphan", v1alpha1.ReasonSecretSynced)
	restart(e, true)
	e.Backend.Reset()
	e.WantPushed("db", v1alpha1.ReasonNoRemoteChanges)
	e.Delete(e.GetPush("db"))
	wantPushDeleted(e, "db")
	e.WantNote("db", "Released", `FakeStore "store" "db", FakeStore "store" property "a" of "properties"`)
	e.Delete(e.Store("store", "main"))
	e.Delete(e.GetPush("orphan"))
	wantPushDeleted(e, "orphan")
	e.WantNote("orphan", "Released", `FakeStore "store" "orphan"`)

	restart(e, false)
	e.Create(e.Store("store", "main"))
	e.Create(e.PushSecret("later"))
	e.WantPushed("later", v1alpha1.ReasonSecretSynced)
	for _, key := range []string{"db", "orphan"} {
		if v := testenv.Remote(e.Backend, key); v != "one" {
			t.Errorf("the remote secret %q is %q, want it unchanged", key, v)
		}
	}
	if n := e.Backend.Writes(); n != 1 {
		t.Errorf("%d writes, want only that of the new object", n)
	}
}
