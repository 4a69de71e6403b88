package clusterstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// pushed is the spec of a PushSecret that pushes a Secret beside it to <namespace>/db.
func (e *env) pushed() v1alpha1.PushSecretSpec {
	return v1alpha1.PushSecretSpec{
		StoreRefs: []v1alpha1.PushStoreRef{{Kind: "ClusterFakeStore", Name: e.name}},
		Selector:  v1alpha1.PushSelector{Secret: &v1alpha1.PushSecretSelector{Name: "source"}},
		Data: []v1alpha1.PushData{{Match: v1alpha1.PushMatch{
			SecretKey: "password", RemoteRef: v1alpha1.PushRemoteRef{RemoteKey: "${namespace}/db"},
		}}},
	}
}

func (e *env) source(namespace, password string) {
	e.Helper()
	e.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.ns(namespace), Name: "source"},
		Data:       map[string][]byte{"password": []byte(password)},
	})
}

func (e *env) push(namespace string, change ...func(*v1alpha1.PushSecretSpec)) {
	e.Helper()
	ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns(namespace), Name: "db"}, Spec: e.pushed()}
	for _, f := range change {
		f(&ps.Spec)
	}
	e.create(ps)
}

func (e *env) wantPushed(namespace, reason string) string {
	e.Helper()
	var message string
	controlplane.Eventually(e, func() string {
		ps := &v1alpha1.PushSecret{}
		if err := api.Get(e.ctx, client.ObjectKey{Namespace: e.ns(namespace), Name: "db"}, ps); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(ps.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != reason || c.ObservedGeneration != ps.Generation {
			return fmt.Sprintf("%s: Ready is %+v, want %s", e.ns(namespace), c, reason)
		}
		message = c.Message
		return ""
	})
	return message
}

// TestPushConditions has a cluster store say who may push, and what.
func TestPushConditions(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{})
	conditions := func(c ...v1alpha1.StoreCondition) {
		update(e, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.name}}, func(s *fakev1.ClusterFakeStore) { s.Spec.Conditions = c })
	}
	conditions(
		v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{e.ns("in")}}, AllowedKeys: []string{"${namespace}/*"}},
		v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{e.ns("escape")}}, AllowedKeys: []string{"${namespace}/*"}},
		v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{e.ns("reads")}}, Access: v1alpha1.AccessReadOnly},
	)
	for _, ns := range []string{"in", "escape", "reads", "out"} {
		e.namespace(ns, nil)
		e.source(ns, ns)
	}
	e.push("in")
	e.push("escape", func(s *v1alpha1.PushSecretSpec) {
		s.Data[0].Match.RemoteRef.RemoteKey = "${namespace}/../" + e.ns("in") + "/db"
	})
	e.push("reads")
	e.push("out")
	e.wantPushed("in", v1alpha1.ReasonSecretSynced)
	for ns, want := range map[string]string{"escape": "is not allowed", "reads": "is not among those", "out": "does not admit namespace"} {
		if m := e.wantPushed(ns, v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, "Denied: ") || !strings.Contains(m, want) {
			t.Errorf("%s: Ready says %q, want %q", ns, m, want)
		}
	}
	if n := e.backend.Writes(); n != 1 {
		t.Errorf("%d writes, want the one that is allowed", n)
	}
	conditions()
	e.wantPushed("out", v1alpha1.ReasonSecretSynced)
}

// TestClusterPushSecret makes an object in the namespaces that match, also in those that come to match later,
// and leaves what it did not make.
func TestClusterPushSecret(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{})
	team := map[string]string{"team": e.name}
	for ns, labels := range map[string]map[string]string{"one": team, "two": nil, "taken": team} {
		e.namespace(ns, labels)
		e.source(ns, ns)
	}
	e.push("taken", func(s *v1alpha1.PushSecretSpec) { s.Suspend = true })
	parent := &v1alpha1.ClusterPushSecret{ObjectMeta: metav1.ObjectMeta{Name: e.name}, Spec: v1alpha1.ClusterPushSecretSpec{
		PushSecretSpec: e.pushed(), PushSecretName: "db",
		PushSecretMetadata: v1alpha1.TemplateMetadata{Labels: map[string]string{"made": "true"}},
		NamespaceChoice:    v1alpha1.NamespaceChoice{NamespaceSelectors: []metav1.LabelSelector{{MatchLabels: team}}},
	}}
	e.create(parent)
	e.wantPushed("one", v1alpha1.ReasonSecretSynced)
	wantStatus := func(provisioned, failed []string) {
		t.Helper()
		controlplane.Eventually(t, func() string {
			if err := api.Get(e.ctx, client.ObjectKeyFromObject(parent), parent); err != nil {
				return err.Error()
			}
			var bad []string
			for _, f := range parent.Status.FailedNamespaces {
				bad = append(bad, f.Namespace)
			}
			return cmp.Diff([][]string{provisioned, failed}, [][]string{parent.Status.ProvisionedNamespaces, bad})
		})
	}
	wantStatus([]string{e.ns("one")}, []string{e.ns("taken")})

	label := func(ns, team string) {
		update(e, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns(ns)}}, func(n *corev1.Namespace) {
			metav1.SetMetaDataLabel(&n.ObjectMeta, "team", team)
		})
	}
	label("two", e.name)
	e.wantPushed("two", v1alpha1.ReasonSecretSynced)
	child := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns("two"), Name: "db"}}
	update(e, child, func(ps *v1alpha1.PushSecret) { ps.Spec.Suspend = true }) // Somebody meddles.
	controlplane.Eventually(t, func() string {
		if err := api.Get(e.ctx, client.ObjectKeyFromObject(child), child); err != nil || child.Spec.Suspend || child.Labels["made"] != "true" {
			return fmt.Sprintf("the object is suspended: %t, labels %v, error %v", child.Spec.Suspend, child.Labels, err)
		}
		return ""
	})
	label("one", "other")
	wantGone := func(ns string) {
		t.Helper()
		controlplane.Eventually(t, func() string {
			err := api.Get(e.ctx, client.ObjectKey{Namespace: e.ns(ns), Name: "db"}, &v1alpha1.PushSecret{})
			if !kerrors.IsNotFound(err) {
				return fmt.Sprintf("the object of %s is still there: %v", ns, err)
			}
			return ""
		})
	}
	wantGone("one")
	wantStatus([]string{e.ns("two")}, []string{e.ns("taken")})
	if err := api.Delete(e.ctx, parent); err != nil {
		t.Fatal(err)
	}
	wantGone("two")
	if m := e.wantPushed("taken", v1alpha1.ReasonSuspended); m == "" {
		t.Error("what somebody else made was touched")
	}
}
