package pushsecret

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/scope"
	"github.com/direct-secrets/direct-secrets/common/internal/simulation"
)

// TestRefusedRemovalEnds deletes an object and its namespace after its cluster store has ceased to allow its keys. The object must be
// kept for ten minutes and no longer.
func TestRefusedRemovalEnds(t *testing.T) {
	rules, err := scope.New(&v1alpha1.ClusterStoreSpec{Conditions: []v1alpha1.StoreCondition{{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{"n"}}, AllowedKeys: []string{"other/*"}}}})
	if err != nil {
		t.Fatal(err)
	}
	grant, _ := rules.Grant("n", nil)
	deleted := metav1.NewTime(noon)
	ps := &v1alpha1.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "db", DeletionTimestamp: &deleted}}
	c := simulation.NewClient(simulation.NewProjectServer(), simulation.AtOnce)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{"kubernetes"}}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	dests := []destination{{
		store: storeOf("", "store"), grant: &grant,
		status: v1alpha1.PushStoreStatus{Kind: "ClusterFakeStore", Name: "store", Entries: []v1alpha1.PushEntryStatus{{RemoteKey: "db", Version: "1", Created: true}}},
	}}
	var got []bool
	p := &pass{reconciler: &reconciler{}, ps: ps, obj: newObject()}
	for _, after := range []time.Duration{time.Minute, 11 * time.Minute} {
		p.now = noon.Add(after)
		release, err := mayRelease(t.Context(), c, ps, p.leftover(dests), p.now)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, release)
	}
	if diff := cmp.Diff([]bool{false, true}, got); diff != "" {
		t.Errorf("released after one minute, and after eleven: -want, +got:\n%s", diff)
	}
}
