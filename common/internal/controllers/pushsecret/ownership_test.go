package pushsecret_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
)

// TestPushHostileSpecs deletes an object next to objects of another namespace whose keys are patterns for anything. They have
// pushed nothing, so they hold up nothing for longer than some seconds, and take nothing over.
func TestPushHostileSpecs(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})
	for _, ns := range []string{"hostile", "shop"} {
		e.CreateNamespace(ns, nil)
	}
	shop, hostile := e.In("shop"), e.In("hostile")
	shop.Source("source", map[string]string{"password": "one"})
	for i := range 6 {
		ps := &v1alpha1.PushSecret{ObjectMeta: hostile.Meta(fmt.Sprintf("any-%d", i)), Spec: e.Pushes()}
		ps.Spec.DeletionPolicy = v1alpha1.PushDeletionDelete
		ps.Spec.Selector.Secret = &v1alpha1.PushSecretSelector{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}}}
		ps.Spec.Data = []v1alpha1.PushData{testenv.PushData("password", strings.Repeat("${name}", 290), ""), testenv.PushData("password", "${name}", "")}
		hostile.Create(ps)
	}
	for i := range 6 {
		hostile.WantPushed(fmt.Sprintf("any-%d", i), v1alpha1.ReasonSecretSyncedError)
	}
	e.CreatePushSecret("shop", func(s *v1alpha1.PushSecretSpec) { s.DeletionPolicy = v1alpha1.PushDeletionDelete })
	shop.WantPushed("db", v1alpha1.ReasonSecretSynced)
	key := shop.GetPush("db").Status.Stores[0].Entries[0].RemoteKey
	start := time.Now()
	shop.Delete(shop.GetPush("db"))
	shop.Eventually(func() string {
		if err := shop.API.Get(shop.Ctx, client.ObjectKey{Namespace: shop.NS, Name: "db"}, &v1alpha1.PushSecret{}); !kerrors.IsNotFound(err) {
			return "the object still exists"
		}
		return ""
	})
	t.Logf("removed after %s", time.Since(start))
	if got := testenv.Remote(e.Backend, key); got != "" {
		t.Errorf("%s is left: %q", key, got)
	}
}

// TestPushFormerStatus starts the operator over statuses of the former version, which recorded no place and no owner. It
// deletes what an object created, but not what another object uses.
func TestPushFormerStatus(t *testing.T) {
	e := testenv.New(t)
	e.Source("source", map[string]string{"password": "one"})
	to := func(keys ...string) func(*v1alpha1.PushSecret) {
		return func(ps *v1alpha1.PushSecret) {
			ps.Spec.Data = nil
			for _, key := range keys {
				ps.Spec.Data = append(ps.Spec.Data, testenv.PushData("password", key, ""))
			}
		}
	}
	for _, ps := range []*v1alpha1.PushSecret{e.PushSecret("first", testenv.PushDeletes, to("own", "shared")), e.PushSecret("second", testenv.PushDeletes, to("shared"))} {
		e.Create(ps)
		e.WantPushed(ps.Name, v1alpha1.ReasonSecretSynced)
	}
	e.Stop()
	for _, name := range []string{"first", "second"} {
		ps := e.GetPush(name)
		for i := range ps.Status.Stores {
			ps.Status.Stores[i].Place = ""
			for j := range ps.Status.Stores[i].Entries {
				ps.Status.Stores[i].Entries[j].Owner = ""
			}
		}
		if err := e.API.Status().Update(e.Ctx, ps); err != nil {
			t.Fatal(err)
		}
	}
	e.Start()
	e.Delete(e.GetPush("first"))
	wantPushDeleted(e, "first")
	left := func(want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, map[string]string{"own": testenv.Remote(e.Backend, "own"), "shared": testenv.Remote(e.Backend, "shared")}); diff != "" {
			t.Errorf("what is left: -want, +got:\n%s", diff)
		}
	}
	left(map[string]string{"own": "", "shared": "one"})
	e.Delete(e.GetPush("second"))
	wantPushDeleted(e, "second")
	left(map[string]string{"own": "", "shared": ""})
}
