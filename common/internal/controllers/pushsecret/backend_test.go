package pushsecret

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/resolve"
	"github.com/direct-secrets/direct-secrets/common/provider"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPushesAndRemovalsWaitForEachOther checks that removals and pushes wait for each other, and that pushes do not wait for pushes.
func TestPushesAndRemovalsWaitForEachOther(t *testing.T) {
	var locks siteLocks
	db := site{"a", "db"}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	enter := func(removes bool) (func(), bool) {
		unlock, err := locks.enter(over, db, removes)
		return unlock, err == nil
	}
	first, ok := enter(false)
	second, ok2 := enter(false)
	if !ok || !ok2 {
		t.Fatal("pushes wait for each other")
	}
	first()
	if _, ok := enter(true); ok {
		t.Error("a removal does not wait for a push")
	}
	removed := make(chan func())
	go func() {
		unlock, err := locks.enter(t.Context(), db, true)
		if err != nil {
			t.Error(err)
		}
		removed <- unlock
	}()
	second()
	unlock := <-removed
	if _, ok := enter(false); ok {
		t.Error("a push does not wait for a removal")
	}
	if elsewhere, err := locks.enter(over, site{"b", "db"}, false); err != nil {
		t.Error("a push waits for a removal elsewhere")
	} else {
		elsewhere()
	}
	unlock()
	if len(locks.busy) > 0 {
		t.Errorf("%d entries are left", len(locks.busy))
	}
}

func TestBackend(t *testing.T) {
	ref := func(name string) *fakev1.FakeAuth {
		return &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: name, Key: "k"}}
	}
	namespaced := func(ns, name string, auth *fakev1.FakeAuth) provider.Object {
		s := &fakev1.FakeStore{ObjectMeta: metav1.ObjectMeta{Namespace: ns}, Spec: fakev1.FakeStoreSpec{Backend: name, Auth: auth}}
		s.Spec.RefreshInterval, s.Spec.Access = v1alpha1.Duration(ns), v1alpha1.AccessReadWrite
		return s
	}
	twin := &fakev1.ClusterFakeStore{}
	twin.Spec.Backend, twin.Spec.Conditions = "b", []v1alpha1.StoreCondition{{Access: v1alpha1.AccessReadOnly}}
	cases := map[string]struct {
		reason             string
		store              provider.Object
		sameAddr, sameAuth bool
	}{
		"Same":      {"Fields that configure the operator do not count.", namespaced("m", "b", nil), true, true},
		"Cluster":   {"The cluster twin has the same backend.", twin, true, true},
		"Elsewhere": {"Fields that select the backend count.", namespaced("n", "c", nil), false, true},
		"Login":     {"Credentials count separately.", namespaced("n", "b", ref("c")), true, false},
	}
	kind := func(s provider.Object) resolve.Route {
		k := resolve.Route{GVK: schema.GroupVersionKind{Group: "g", Kind: "FakeStore"}}
		if _, ok := s.(*fakev1.ClusterFakeStore); ok {
			k.GVK.Kind = "ClusterFakeStore"
		}
		return k
	}
	of := func(s provider.Object) backend { return backendOf(kind(s), s, "n") }
	base := of(namespaced("n", "b", nil))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := of(tc.store)
			if diff := cmp.Diff([]bool{tc.sameAddr, tc.sameAuth}, []bool{b.address == base.address, b.login == base.login}); diff != "" {
				t.Errorf("\n%s\n%+v: -want, +got:\n%s", tc.reason, b, diff)
			}
		})
	}
	if of(namespaced("n", "b", ref("c"))).login == of(namespaced("m", "b", ref("c"))).login {
		t.Error("credentials of one name in two namespaces are the same")
	}
}
