package storehealth_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestProviderNamespace has a cluster store whose spec names the namespace of its credentials.
func TestProviderNamespace(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{}, testenv.WithClusterAuth(""))
	e.Backend.SetPassword("right")
	e.Backend.Put("db", []byte("one"))
	e.CreateNamespace("ops", nil)
	e.CreateNamespace("shop", nil)
	e.In("ops").Credentials("password", "right")
	e.In("shop").Credentials("password", "wrong")
	if m := e.WantStore(e.Name, v1alpha1.ReasonStoreInvalidSpec).Message; !strings.Contains(m, "needs a namespace") {
		t.Errorf("without a namespace the message of the store is %q", m)
	}
	testenv.Update(e.Client, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}, testenv.WithClusterAuth(e.Namespaced("ops")))
	e.WantStore(e.Name, v1alpha1.ReasonStoreValid)
	e.CreateExternalSecret("shop", "db")
	e.In("shop").WantReady("db", v1alpha1.ReasonSecretSynced)
}

// TestDeniedRead changes the password at the provider. The first refused read triggers a validation of the store,
// long before its interval ends, and the store then holds its other objects.
func TestDeniedRead(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{}, func(s *fakev1.ClusterFakeStore) { s.Spec.ValidationInterval = "10h" })
	e.Backend.Put("db", []byte("one"))
	for _, n := range []string{"one", "two"} {
		e.CreateNamespace(n, nil)
	}
	e.CreateExternalSecret("one", "db")
	e.In("one").WantReady("db", v1alpha1.ReasonSecretSynced)
	e.WantStore(e.Name, v1alpha1.ReasonStoreValid)
	e.Backend.SetPassword("changed")
	e.CreateExternalSecret("two", "db")
	e.WantStore(e.Name, v1alpha1.ReasonStoreAuthFailed)
	e.In("two").WantReady("db", v1alpha1.ReasonStoreNotReady)
	since := time.Now()
	testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespaced("one"), Name: "db"}}, func(es *v1alpha1.ExternalSecret) {
		es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	e.In("one").WantReady("db", v1alpha1.ReasonStoreNotReady)
	e.WantUntouched(since)
	if v := e.In("one").Data("db")["value"]; v != "one" {
		t.Errorf("the Secret holds %q, want it as it was", v)
	}
}

// TestFailureIsAnEvent has a store refuse its login and accept it again. Each change causes an Event.
func TestFailureIsAnEvent(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{}, func(s *fakev1.ClusterFakeStore) { s.Spec.ValidationInterval = "1s" })
	e.WantStore(e.Name, v1alpha1.ReasonStoreValid)
	e.Backend.SetPassword("changed")
	e.WantStore(e.Name, v1alpha1.ReasonStoreAuthFailed)
	e.WantEvent(e.Name, v1alpha1.ReasonStoreAuthFailed, "the backend rejects the password")
	e.Backend.SetPassword("")
	e.WantStore(e.Name, v1alpha1.ReasonStoreValid)
	e.WantEvent(e.Name, v1alpha1.ReasonStoreValid, "the store answers and accepts the login")
}

// TestWarnings has a check that succeeds with a warning. The store is valid, its condition has the warning, and each warning causes one Event.
func TestWarnings(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{}, func(s *fakev1.ClusterFakeStore) { s.Spec.ValidationInterval = "1s" })
	e.Backend.Inject(fake.Fault{Call: fake.CallCheck, Err: provider.Warnings{"the token ends soon"}})
	e.WantStore(e.Name, v1alpha1.ReasonStoreValid)
	checks := len(e.Backend.Calls(fake.CallCheck))
	e.Eventually(func() string {
		if n := len(e.Backend.Calls(fake.CallCheck)) - checks; n < 3 {
			return "the store was not checked again"
		}
		return ""
	})
	e.WantEvent(e.Name, "StoreWarning", "the token ends soon")
	if c := e.WantStore(e.Name, v1alpha1.ReasonStoreValid); c.Message != "the store answers and accepts the login; the token ends soon" {
		t.Errorf("the condition has the message %q", c.Message)
	}
}

// TestUnasked has stores that are not asked. Their conditions say so.
func TestUnasked(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{ScopeSpec: v1alpha1.ScopeSpec{AuthenticationScope: v1alpha1.ScopeManifestNamespace}})
	want := "the spec is valid; each namespace has its own login, which is checked when it is used"
	if c := e.WantStore(e.Name, v1alpha1.ReasonStoreValid); c.Message != want {
		t.Errorf("with a login of each namespace: the message is %q, want %q", c.Message, want)
	}
	e.Server.Backend("plain", fake.ReadOnly())
	testenv.Update(e.Client, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}, func(s *fakev1.ClusterFakeStore) {
		s.Spec.AuthenticationScope, s.Spec.Backend = "", "plain"
	})
	want = "the spec is valid; this Kind has no check of its server"
	e.Eventually(func() string {
		if c := e.WantStore(e.Name, v1alpha1.ReasonStoreValid); c.Message != want {
			return "without a check: the message is " + c.Message
		}
		return ""
	})
}
