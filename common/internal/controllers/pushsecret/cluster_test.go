package pushsecret_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestPushConditions checks that the conditions of a cluster store limit the namespaces and keys of pushes.
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
	for ns, want := range map[string]string{"escape": "is not allowed", "reads": "is not allowed in this namespace"} {
		if m := e.In(ns).WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, "Denied: ") || !strings.Contains(m, want) {
			t.Errorf("%s: Ready says %q, want %q", ns, m, want)
		}
	}
	if m := e.In("out").WantPushed("db", v1alpha1.ReasonForbidden); !strings.Contains(m, "does not allow namespace") {
		t.Errorf("out: Ready says %q", m)
	}
	if n := e.Backend.Writes(); n != 1 {
		t.Errorf("%d writes, want the one that is allowed", n)
	}
	conditions()
	e.In("out").WantPushed("db", v1alpha1.ReasonSecretSynced)
}

// TestPushSelectsAdmitted selects all cluster stores by labels. The status must list only those that admit the
// namespace.
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
	if m := e.In("out").WantPushed("db", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "no store that serves this namespace has the labels") {
		t.Errorf("Ready says %q", m)
	}
	if stores := e.In("out").GetPush("db").Status.Stores; len(stores) > 0 {
		t.Errorf("the status lists stores that do not admit the namespace: %+v", stores)
	}

	// Secrets created while the store admitted the namespace stay in the status.
	admit(e.Namespaced("out"))
	e.In("out").WantPushed("db", v1alpha1.ReasonSecretSynced)
	e.In("in").WantPushed("db", v1alpha1.ReasonForbidden)
	if stores := e.In("in").GetPush("db").Status.Stores; len(stores) != 1 || len(stores[0].Entries) != 1 {
		t.Errorf("the status no longer lists what was created: %+v", stores)
	}
}

// TestPushUnpermittedSpecKeepsNoSecret removes secrets that objects of other namespaces name and have not pushed. A
// namespace must not be able to keep the secrets of another one from being removed.
func TestPushUnpermittedSpecKeepsNoSecret(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})
	admitted := func(namespace string) v1alpha1.NamespaceCondition {
		return v1alpha1.NamespaceCondition{Namespaces: []string{e.Namespaced(namespace)}}
	}
	testenv.Update(e.Client, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}, func(s *fakev1.ClusterFakeStore) {
		s.Spec.Conditions = []v1alpha1.StoreCondition{
			{NamespaceCondition: admitted("in")}, {NamespaceCondition: admitted("suspended")},
			{NamespaceCondition: admitted("reads"), Access: v1alpha1.AccessReadOnly},
			{NamespaceCondition: admitted("keys"), AllowedKeys: []string{"${namespace}/*"}},
		}
	})
	otherStores := map[string]string{"in": "", "out": "is not admitted", "reads": "may read only", "keys": "may use other keys", "login": "has a store of its own, which fails", "suspended": "has not pushed yet"}
	for ns := range otherStores {
		e.CreateNamespace(ns, nil)
		e.In(ns).Source("source", map[string]string{"password": "one"})
	}
	delete(otherStores, "in")
	key := func(otherStore string) string { return e.Namespaced("in") + "/" + otherStore }
	e.CreatePushSecret("in", func(s *v1alpha1.PushSecretSpec) {
		s.DeletionPolicy, s.Data = v1alpha1.PushDeletionDelete, nil
		for otherStore := range otherStores {
			s.Data = append(s.Data, testenv.PushData("password", key(otherStore), ""))
		}
	})
	in := e.In("in")
	in.WantPushed("db", v1alpha1.ReasonSecretSynced)

	login := &fakev1.FakeStore{ObjectMeta: e.In("login").Meta("own"), Spec: fakev1.FakeStoreSpec{
		Backend: e.Name, Auth: &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "absent", Key: "password"}},
	}}
	e.Create(login)
	for otherStore := range otherStores {
		e.CreatePushSecret(otherStore, func(s *v1alpha1.PushSecretSpec) {
			s.Data[0].Match.RemoteRef.RemoteKey = key(otherStore)
			s.Suspend = otherStore == "suspended"
			if otherStore == "login" {
				s.StoreRefs = []v1alpha1.PushStoreRef{{Kind: "FakeStore", Name: "own"}}
			}
		})
		reasons := map[string]string{
			"suspended": v1alpha1.ReasonSuspended, "out": v1alpha1.ReasonForbidden, "login": v1alpha1.ReasonStoreNotReady,
		}
		e.In(otherStore).WantPushed("db", cmp.Or(reasons[otherStore], v1alpha1.ReasonSecretSyncedError))
	}
	if err := in.API.Delete(in.Ctx, in.GetPush("db")); err != nil {
		t.Fatal(err)
	}
	in.Eventually(func() string {
		if err := in.API.Get(in.Ctx, client.ObjectKey{Namespace: in.NS, Name: "db"}, &v1alpha1.PushSecret{}); !kerrors.IsNotFound(err) {
			return "the object still exists"
		}
		return ""
	})
	for otherStore, why := range otherStores {
		if got := testenv.Remote(e.Backend, key(otherStore)); got != "" {
			t.Errorf("a namespace that %s: the remote secret is %q", why, got)
		}
	}
}

// TestPushStoreExcludesNamespaceDuringPush makes a cluster store stop admitting a namespace while its first push runs. The status
// must list the secret that the push creates.
func TestPushStoreExcludesNamespaceDuringPush(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{})
	store := &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}
	testenv.Update(e.Client, store, func(s *fakev1.ClusterFakeStore) { s.Labels = map[string]string{"selected": e.Name} })
	e.CreateNamespace("in", nil)
	in := e.In("in")
	in.Source("source", map[string]string{"password": "one"})
	resume := e.Backend.Inject(fake.Fault{Call: fake.CallCreate, Hang: true})
	e.CreatePushSecret("in", func(s *v1alpha1.PushSecretSpec) {
		s.DeletionPolicy = v1alpha1.PushDeletionDelete
		s.StoreRefs[0].Name, s.StoreRefs[0].LabelSelector = "", &metav1.LabelSelector{MatchLabels: map[string]string{"selected": e.Name}}
	})
	if err := e.Backend.Wait(e.Ctx, 1, fake.CallCreate); err != nil {
		t.Fatal(err)
	}
	testenv.Update(e.Client, store, func(s *fakev1.ClusterFakeStore) {
		s.Spec.Conditions = []v1alpha1.StoreCondition{{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{"other"}}}}
	})
	in.WantPushed("db", v1alpha1.ReasonForbidden)
	resume()
	in.Eventually(func() string {
		ps := in.GetPush("db")
		if stores := ps.Status.Stores; len(stores) != 1 || len(stores[0].Entries) != 1 {
			return fmt.Sprintf("the status no longer lists what was created: %+v", stores)
		}
		if len(ps.Finalizers) != 1 {
			return "the object has no finalizer, so the created secret would be left behind"
		}
		return ""
	})
}

// TestRepairedCredentialWakes corrects the credentials with which one namespace uses a cluster store and a cluster
// generator. Objects of every Kind must try again at once, and not after their back-off.
func TestRepairedCredentialWakes(t *testing.T) {
	own := v1alpha1.ScopeSpec{AuthenticationScope: v1alpha1.ScopeManifestNamespace}
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{ScopeSpec: own}, testenv.WithClusterAuth(""))
	e.Backend.SetPassword("right")
	e.Backend.Put("db", []byte("one"))
	// After this error, an object that nothing wakes waits for longer than the test does.
	denied := provider.NewError(provider.Denied, "wrong password")
	denied.RetryAfter = provider.MaxRetryAfter
	calls := []fake.Call{fake.CallGetBatch, fake.CallObserve, fake.CallGenerate}
	var repairs []func()
	for _, call := range calls {
		repairs = append(repairs, e.Backend.Inject(fake.Fault{Call: call, Err: denied}))
	}
	auth := &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "credentials", Key: "password"}}
	e.Create(&fakev1.ClusterFakeGenerator{ObjectMeta: metav1.ObjectMeta{Name: e.Name}, Spec: fakev1.ClusterFakeGeneratorSpec{
		FakeGeneratorSpec: fakev1.FakeGeneratorSpec{Backend: e.Name, Auth: auth}, ScopeSpec: own,
	}})
	e.CreateNamespace("shop", nil)
	shop := e.In("shop")
	credentials := shop.Credentials("password", "wrong")
	shop.Source("source", map[string]string{"password": "x"})
	e.CreateExternalSecret("shop", "db")
	e.CreatePushSecret("shop")
	shop.Create(&v1alpha1.ExternalSecret{ObjectMeta: shop.Meta("generated"), Spec: v1alpha1.ExternalSecretSpec{
		DataFrom: []v1alpha1.DataFromEntry{{SourceRef: &v1alpha1.SourceRef{GeneratorRef: &v1alpha1.StoreRef{Kind: "ClusterFakeGenerator", Name: e.Name}}}},
	}})
	for _, call := range calls {
		if err := e.Backend.Wait(e.Ctx, 1, call); err != nil {
			t.Fatal(err)
		}
	}
	shop.WantReady("db", v1alpha1.ReasonSecretSyncedError)
	shop.WantPushed("db", v1alpha1.ReasonSecretSyncedError)
	shop.WantReady("generated", v1alpha1.ReasonSecretSyncedError)
	for _, repair := range repairs {
		repair()
	}
	testenv.Update(e.Client, credentials, func(s *corev1.Secret) { s.Data["password"] = []byte("right") })
	shop.WantReady("db", v1alpha1.ReasonSecretSynced)
	shop.WantPushed("db", v1alpha1.ReasonSecretSynced)
	shop.WantReady("generated", v1alpha1.ReasonSecretSynced)
}
