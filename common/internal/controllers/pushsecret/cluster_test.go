package pushsecret_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPushConditions has a cluster store say who may push, and what.
func TestPushConditions(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})
	conditions := func(c ...v1alpha1.StoreCondition) {
		testenv.Update(e.Client, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}, func(s *fakev1.ClusterFakeStore) { s.Spec.Conditions = c })
	}
	conditions(
		v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{e.Namespaced("in")}}, AllowedKeys: []string{"${namespace}/*"}},
		v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{e.Namespaced("escape")}}, AllowedKeys: []string{"${namespace}/*"}},
		v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{e.Namespaced("reads")}}, Access: v1alpha1.AccessReadOnly},
	)
	for _, ns := range []string{"in", "escape", "reads", "out"} {
		e.CreateNamespace(ns, nil)
		e.In(ns).Source("source", map[string]string{"password": ns})
	}
	e.CreatePushSecret("in")
	e.CreatePushSecret("escape", func(s *v1alpha1.PushSecretSpec) {
		s.Data[0].Match.RemoteRef.RemoteKey = "${namespace}/../" + e.Namespaced("in") + "/db"
	})
	e.CreatePushSecret("reads")
	e.CreatePushSecret("out")
	e.In("in").WantPushed("db", v1alpha1.ReasonSecretSynced)
	for ns, want := range map[string]string{"escape": "is not allowed", "reads": "is not among those", "out": "does not admit namespace"} {
		if m := e.In(ns).WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, "Denied: ") || !strings.Contains(m, want) {
			t.Errorf("%s: Ready says %q, want %q", ns, m, want)
		}
	}
	if n := e.Backend.Writes(); n != 1 {
		t.Errorf("%d writes, want the one that is allowed", n)
	}
	conditions()
	e.In("out").WantPushed("db", v1alpha1.ReasonSecretSynced)
}

// TestPushSelectsAdmitted selects all cluster stores by labels. A namespace learns only of those that admit it.
func TestPushSelectsAdmitted(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})
	store := &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
	admit := func(namespace string) {
		testenv.Update(e.Client, store, func(s *fakev1.ClusterFakeStore) {
			s.Labels = map[string]string{"selected": e.Name}
			s.Spec.Conditions = []v1alpha1.StoreCondition{{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{namespace}}}}
		})
	}
	admit(e.Namespaced("in"))
	for _, ns := range []string{"in", "out"} {
		e.CreateNamespace(ns, nil)
		e.In(ns).Source("source", map[string]string{"password": ns})
		e.CreatePushSecret(ns, func(s *v1alpha1.PushSecretSpec) {
			s.DeletionPolicy = v1alpha1.PushDeletionDelete
			s.StoreRefs[0].Name, s.StoreRefs[0].LabelSelector = "", &metav1.LabelSelector{MatchLabels: map[string]string{"selected": e.Name}}
		})
	}
	e.In("in").WantPushed("db", v1alpha1.ReasonSecretSynced)
	if m := e.In("out").WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "no store that serves this namespace carries the labels") {
		t.Errorf("Ready says %q", m)
	}
	if stores := e.In("out").GetPush("db").Status.Stores; len(stores) > 0 {
		t.Errorf("the status lists stores that do not admit the namespace: %+v", stores)
	}

	// What was created in a store that admits the namespace no more is not forgotten.
	admit(e.Namespaced("out"))
	e.In("out").WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.In("in").WantPushed("db", v1alpha1.ReasonSecretSyncedError)
	if stores := e.In("in").GetPush("db").Status.Stores; len(stores) != 1 || len(stores[0].Entries) != 1 {
		t.Errorf("the status has forgotten what was created: %+v", stores)
	}
}
