package contribution_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestContributionOfCluster has a cluster store contribute to an object that another module claims. Its conditions on
// namespaces and keys apply as if its own module claimed the object. Values that it has contributed before are not
// used any longer, either.
func TestContributionOfCluster(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{Conditions: []v1alpha1.StoreCondition{{AllowedKeys: []string{"${namespace}/*"}}}})
	e.CreateNamespace("a", nil)
	ns := e.Namespaced("a")
	testenv.On(t, e.Plane, ns).Module("other", "other.direct-secrets.io", e.Server.OtherKinds())
	e.Create(&fakev1.OtherFakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"}, Spec: fakev1.FakeStoreSpec{Backend: e.Name}})
	e.Backend.Put(ns+"/db", []byte("one"))
	e.Backend.Put("foreign/db", []byte("foreign"))
	e.CreateExternalSecret("a", ns+"/db", func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{
			SecretKey: "cluster", RemoteRef: es.Spec.Data[0].RemoteRef,
			SourceRef: &v1alpha1.DataSourceRef{StoreRef: *es.Spec.StoreRef},
		})
		es.Spec.StoreRef = &v1alpha1.StoreRef{Kind: "OtherFakeStore", Name: "other"}
	})
	ready := func(reason, part string) {
		t.Helper()
		if m := e.In("a").WantReady("db", reason).Message; !strings.Contains(m, part) {
			t.Errorf("the message is %q, want it to contain %q", m, part)
		}
	}
	ready(v1alpha1.ReasonSecretSynced, "")
	conditions := func(c ...v1alpha1.StoreCondition) {
		t.Helper()
		testenv.Update(e.Client, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}, func(s *fakev1.ClusterFakeStore) { s.Spec.Conditions = c })
	}
	for _, tc := range []struct {
		reason string
		rules  v1alpha1.StoreCondition
	}{
		{"The namespace is no longer admitted.", v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{"elsewhere"}}}},
		{"The key is no longer allowed.", v1alpha1.StoreCondition{AllowedKeys: []string{"elsewhere/*"}}},
	} {
		conditions(tc.rules)
		ready(v1alpha1.ReasonForbidden, "ClusterFakeStore")
		if err := e.API.Delete(e.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}}); err != nil {
			t.Fatal(err)
		}
		testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}}, func(es *v1alpha1.ExternalSecret) {
			metav1.SetMetaDataAnnotation(&es.ObjectMeta, v1alpha1.RefreshRequestAnnotation, tc.reason)
			es.Spec.Target.Name = "db"
		})
		ready(v1alpha1.ReasonForbidden, "ClusterFakeStore")
		if err := e.API.Get(e.Ctx, client.ObjectKey{Namespace: ns, Name: "db"}, &corev1.Secret{}); err == nil {
			t.Fatalf("%s\nThe Secret was created from the values contributed before", tc.reason)
		}
		conditions()
		ready(v1alpha1.ReasonSecretSynced, "")
	}
	// The key of another namespace is refused before any call.
	conditions(v1alpha1.StoreCondition{AllowedKeys: []string{"${namespace}/*"}})
	testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}}, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[1].RemoteRef.Key = "foreign/db" })
	ready(v1alpha1.ReasonForbidden, "foreign/db")
	for _, c := range e.Backend.Calls() {
		if slices.ContainsFunc(c.Refs, func(r provider.Ref) bool { return r.Key == "foreign/db" }) {
			t.Errorf("the backend was asked for %v", c)
		}
	}
}
