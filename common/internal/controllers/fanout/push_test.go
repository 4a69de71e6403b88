package fanout_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// TestClusterPushSecret creates an object in the namespaces that match, also in those that match later. Objects that
// it did not create stay unchanged.
func TestClusterPushSecret(t *testing.T) {
	e := newEnv(t)
	team := map[string]string{"team": e.Name}
	for ns, labels := range map[string]map[string]string{"one": team, "two": nil, "taken": team} {
		e.CreateNamespace(ns, labels)
		e.In(ns).Source("source", map[string]string{"password": ns})
	}
	e.CreatePushSecret("taken", func(s *v1alpha1.PushSecretSpec) { s.Suspend = true })
	parent := &v1alpha1.ClusterPushSecret{ObjectMeta: metav1.ObjectMeta{Name: e.Name}, Spec: v1alpha1.ClusterPushSecretSpec{
		PushSecretSpec: e.Pushes(), PushSecretName: "db",
		PushSecretMetadata: v1alpha1.TemplateMetadata{Labels: map[string]string{"made": "true"}},
		NamespaceChoice:    v1alpha1.NamespaceChoice{NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: team}}},
	}}
	e.Create(parent)
	e.In("one").WantPushed("db", v1alpha1.ReasonSecretSynced)
	wantStatus := func(provisioned, failed []string) {
		t.Helper()
		e.Eventually(func() string {
			if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(parent), parent); err != nil {
				return err.Error()
			}
			var bad []string
			for _, f := range parent.Status.FailedNamespaces {
				bad = append(bad, f.Namespace)
			}
			return cmp.Diff([][]string{provisioned, failed}, [][]string{parent.Status.ProvisionedNamespaces, bad})
		})
	}
	wantStatus([]string{e.Namespaced("one")}, []string{e.Namespaced("taken")})

	label := func(ns, team string) {
		testenv.Update(e.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespaced(ns)}}, func(n *corev1.Namespace) {
			metav1.SetMetaDataLabel(&n.ObjectMeta, "team", team)
		})
	}
	label("two", e.Name)
	e.In("two").WantPushed("db", v1alpha1.ReasonSecretSynced)
	child := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespaced("two"), Name: "db"}}
	testenv.Update(e.Client, child, func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true }) // A user edits the child.
	e.Eventually(func() string {
		if err := e.API.Get(e.Ctx, client.ObjectKeyFromObject(child), child); err != nil || child.Spec.Suspend || child.Labels["made"] != "true" {
			return fmt.Sprintf("the object is suspended: %t, labels %v, error %v", child.Spec.Suspend, child.Labels, err)
		}
		return ""
	})
	label("one", "other")
	wantDeleted := func(ns string) {
		t.Helper()
		e.Eventually(func() string {
			err := e.API.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespaced(ns), Name: "db"}, &v1alpha1.PushSecret{})
			if !kerrors.IsNotFound(err) {
				return fmt.Sprintf("the object of %s still exists: %v", ns, err)
			}
			return ""
		})
	}
	wantDeleted("one")
	wantStatus([]string{e.Namespaced("two")}, []string{e.Namespaced("taken")})
	if err := e.API.Delete(e.Ctx, parent); err != nil {
		t.Fatal(err)
	}
	wantDeleted("two")
	if m := e.In("taken").WantPushed("db", v1alpha1.ReasonSuspended); m == "" {
		t.Error("an object of a user was changed")
	}
}
