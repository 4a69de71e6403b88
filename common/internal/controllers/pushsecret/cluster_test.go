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
