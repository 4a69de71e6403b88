package clusterstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestContributionOfCluster has a cluster store contribute to an object that another module claims. Whom it admits, and
// to which keys, holds as if it were its own: also what it has handed over before is not taken any more.
func TestContributionOfCluster(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{Conditions: []v1alpha1.StoreCondition{{AllowedKeys: []string{"${namespace}/*"}}}})
	e.namespace("a", nil)
	ns := e.ns("a")
	opts := []operator.Option{
		operator.WithScheme(fakev1.AddToScheme), operator.WithConfig(cluster.Config()),
		operator.WithFlags(func(f *operator.Flags) {
			f.MetricsAddress, f.ProbeAddress, f.LeaderElect, f.LogFormat, f.Namespaces = "0", "0", false, "text", ns
		}),
	}
	for _, k := range server.OtherKinds() {
		opts = append(opts, operator.WithStore(k))
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- operator.New("other", "other.direct-secrets.io", opts...).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	e.create(&fakev1.OtherFakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other"}, Spec: fakev1.FakeStoreSpec{Backend: e.name}})
	e.backend.Put(ns+"/db", []byte("one"))
	e.backend.Put("foreign/db", []byte("foreign"))
	e.externalSecret("a", ns+"/db", func(es *v1alpha1.ExternalSecret) {
		es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{
			SecretKey: "cluster", RemoteRef: es.Spec.Data[0].RemoteRef,
			SourceRef: &v1alpha1.DataSourceRef{StoreRef: *es.Spec.StoreRef},
		})
		es.Spec.StoreRef = &v1alpha1.StoreRef{Kind: "OtherFakeStore", Name: "other"}
	})
	ready := func(reason, says string) {
		t.Helper()
		if m := e.wantReady("a", reason); !strings.Contains(m, says) {
			t.Errorf("the message is %q, want it to say %q", m, says)
		}
	}
	ready(v1alpha1.ReasonSecretSynced, "")
	conditions := func(c ...v1alpha1.StoreCondition) {
		t.Helper()
		update(e, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.name}}, func(s *fakev1.ClusterFakeStore) { s.Spec.Conditions = c })
	}
	for _, tc := range []struct {
		reason string
		rules  v1alpha1.StoreCondition
	}{
		{"The namespace is not admitted any more.", v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{"elsewhere"}}}},
		{"Nor is the key.", v1alpha1.StoreCondition{AllowedKeys: []string{"elsewhere/*"}}},
	} {
		conditions(tc.rules)
		ready(v1alpha1.ReasonForbidden, "ClusterFakeStore")
		if err := api.Delete(e.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}}); err != nil {
			t.Fatal(err)
		}
		update(e, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}}, func(es *v1alpha1.ExternalSecret) {
			metav1.SetMetaDataAnnotation(&es.ObjectMeta, v1alpha1.RefreshRequestAnnotation, tc.reason)
			es.Spec.Target.Name = "db"
		})
		ready(v1alpha1.ReasonForbidden, "ClusterFakeStore")
		if err := api.Get(e.ctx, client.ObjectKey{Namespace: ns, Name: "db"}, &corev1.Secret{}); err == nil {
			t.Fatalf("%s\nThe Secret was made from what was handed over before", tc.reason)
		}
		conditions()
		ready(v1alpha1.ReasonSecretSynced, "")
	}
	// Another's key is refused before any call.
	conditions(v1alpha1.StoreCondition{AllowedKeys: []string{"${namespace}/*"}})
	update(e, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}}, func(es *v1alpha1.ExternalSecret) { es.Spec.Data[1].RemoteRef.Key = "foreign/db" })
	ready(v1alpha1.ReasonForbidden, "foreign/db")
	for _, c := range e.backend.Calls() {
		if slices.ContainsFunc(c.Refs, func(r provider.Ref) bool { return r.Key == "foreign/db" }) {
			t.Errorf("the backend was asked for %v", c)
		}
	}
}
