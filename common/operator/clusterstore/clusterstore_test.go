package clusterstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// TestAdmission has namespaces come into the scope of a store and go out of it, by their labels and by
// the store's conditions. Who is out keeps the Secret as it is, and costs no call.
func TestAdmission(t *testing.T) {
	selects := []v1alpha1.StoreCondition{{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}}}}
	e := newEnv(t, v1alpha1.ClusterStoreSpec{Conditions: selects})
	e.backend.Put("db", []byte("one"))
	e.namespace("in", map[string]string{"team": "shop"})
	e.namespace("out", nil)
	e.externalSecret("in", "db")
	e.externalSecret("out", "db")
	e.wantReady("in", v1alpha1.ReasonSecretSynced)
	if m := e.wantReady("out", v1alpha1.ReasonForbidden); !strings.Contains(m, e.ns("out")) || !strings.Contains(m, "spec.conditions") {
		t.Errorf("Ready says %q, want it to name the namespace and the field", m)
	}
	if v := e.value("out"); v != "" {
		t.Errorf("a namespace that is not admitted got %q", v)
	}

	label := func(namespace, team string) {
		update(e, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.ns(namespace)}}, func(n *corev1.Namespace) {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels["team"] = team
		})
	}
	label("out", "shop")
	e.wantReady("out", v1alpha1.ReasonSecretSynced)
	label("in", "bank")
	e.wantReady("in", v1alpha1.ReasonForbidden)
	since := time.Now()
	update(e, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns("in"), Name: "db"}}, func(es *v1alpha1.ExternalSecret) {
		es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	e.wantReady("in", v1alpha1.ReasonForbidden)
	e.wantUntouched(since)
	if v := e.value("in"); v != "one" {
		t.Errorf("the Secret of a namespace that is not admitted any more holds %q, want it as it was", v)
	}

	conditions := func(c ...v1alpha1.StoreCondition) {
		update(e, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.name}}, func(s *fakev1.ClusterFakeStore) { s.Spec.Conditions = c })
	}
	conditions(v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{e.ns("in")}}})
	e.wantReady("in", v1alpha1.ReasonSecretSynced)
	e.wantReady("out", v1alpha1.ReasonForbidden)
	conditions(v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceRegexes: []string{"("}}})
	if m := e.wantStore(v1alpha1.ReasonStoreInvalidSpec); !strings.HasPrefix(m, "spec.conditions[0].namespaceRegexes[0]: ") {
		t.Errorf("the store says %q, want it to name the field", m)
	}
	e.wantReady("in", v1alpha1.ReasonForbidden)
	conditions()
	e.wantReady("in", v1alpha1.ReasonSecretSynced)
	e.wantReady("out", v1alpha1.ReasonSecretSynced)
}

// TestAllowedKeys asks for keys that are not allowed, in all the ways a spec can ask.
func TestAllowedKeys(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{Conditions: []v1alpha1.StoreCondition{{AllowedKeys: []string{"${namespace}/*"}}}})
	namespaces := map[string]func(es *v1alpha1.ExternalSecret){
		"get": func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].RemoteRef.Key = "bank/db" },
		"up":  func(es *v1alpha1.ExternalSecret) { es.Spec.Data[0].RemoteRef.Key = es.Namespace + "/../bank/db" },
		"extract": func(es *v1alpha1.ExternalSecret) {
			es.Spec.Data, es.Spec.DataFrom = nil, []v1alpha1.DataFromEntry{{Extract: &v1alpha1.RemoteRef{Key: "bank/db"}}}
		},
		"find": func(es *v1alpha1.ExternalSecret) {
			es.Spec.Data, es.Spec.DataFrom = nil, []v1alpha1.DataFromEntry{{Find: &v1alpha1.Find{Name: &v1alpha1.FindName{RegExp: ".*"}}}}
		},
		"second": func(es *v1alpha1.ExternalSecret) {
			es.Spec.Data = append(es.Spec.Data, v1alpha1.DataEntry{SecretKey: "other", RemoteRef: v1alpha1.RemoteRef{Key: "bank/db"}})
		},
	}
	e.backend.Put("bank/db", []byte("theirs"))
	since := time.Now()
	for name, change := range namespaces {
		e.namespace(name, nil)
		e.backend.Put(e.ns(name)+"/db", []byte("ours"))
		e.externalSecret(name, e.ns(name)+"/db", change)
	}
	for name := range namespaces {
		e.wantReady(name, v1alpha1.ReasonForbidden)
		if v := e.value(name); v != "" {
			t.Errorf("%s: the Secret holds %q, want none", name, v)
		}
	}
	e.wantUntouched(since)

	e.namespace("own", nil)
	e.backend.Put(e.ns("own")+"/db", []byte("ours"))
	e.externalSecret("own", e.ns("own")+"/db", func(es *v1alpha1.ExternalSecret) {
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{Find: &v1alpha1.Find{Path: e.ns("own") + "/", Name: &v1alpha1.FindName{RegExp: ".*"}}}}
	})
	e.wantReady("own", v1alpha1.ReasonSecretSynced)
	if v := e.value("own"); v != "ours" {
		t.Errorf("the Secret holds %q, want what is the namespace's own", v)
	}
}

func password(namespace string) func(*fakev1.ClusterFakeStore) {
	return func(s *fakev1.ClusterFakeStore) {
		s.Spec.Auth = &fakev1.FakeAuth{SecretRef: v1alpha1.SecretKeySelector{Name: "credentials", Key: "password", Namespace: namespace}}
	}
}

func (e *env) credentials(namespace, password string) *corev1.Secret {
	e.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.ns(namespace), Name: "credentials"},
		Data:       map[string][]byte{"password": []byte(password)},
	}
	e.create(s)
	return s
}

// TestManifestNamespace has each namespace log in with credentials of its own. What one has is nothing
// to another, and what changes counts at once.
func TestManifestNamespace(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{ScopeSpec: v1alpha1.ScopeSpec{AuthenticationScope: v1alpha1.ScopeManifestNamespace}}, password(""))
	e.backend.SetPassword("right")
	e.backend.Put("db", []byte("one"))
	for _, n := range []string{"right", "wrong", "none"} {
		e.namespace(n, nil)
	}
	e.credentials("right", "right")
	wrong := e.credentials("wrong", "wrong")
	for _, n := range []string{"right", "wrong", "none"} {
		e.externalSecret(n, "db")
	}
	e.wantStore(v1alpha1.ReasonStoreValid)
	e.wantReady("right", v1alpha1.ReasonSecretSynced)
	if m := e.wantReady("wrong", v1alpha1.ReasonSecretSyncedError); !strings.HasPrefix(m, "Denied: ") {
		t.Errorf("with a wrong password Ready says %q", m)
	}
	if m := e.wantReady("none", v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, e.ns("none")+"/credentials does not exist") {
		t.Errorf("without a Secret Ready says %q", m)
	}
	update(e, wrong, func(s *corev1.Secret) { s.Data["password"] = []byte("right") })
	e.wantReady("wrong", v1alpha1.ReasonSecretSynced)
	e.credentials("none", "right")
	e.wantReady("none", v1alpha1.ReasonSecretSynced)

	update(e, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.name}}, password(e.ns("right")))
	controlplane.Eventually(t, func() string {
		for _, n := range []string{"right", "wrong", "none"} {
			update(e, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns(n), Name: "db"}}, func(es *v1alpha1.ExternalSecret) {
				es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: time.Now().String()}
			})
			if m := e.wantReady(n, v1alpha1.ReasonSecretSyncedError); !strings.Contains(m, "must not name a namespace") {
				return n + " says " + m
			}
		}
		return ""
	})
}

// TestProviderNamespace has a store that names the namespace of its credentials.
func TestProviderNamespace(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{}, password(""))
	e.backend.SetPassword("right")
	e.backend.Put("db", []byte("one"))
	e.namespace("ops", nil)
	e.namespace("shop", nil)
	e.credentials("ops", "right")
	e.credentials("shop", "wrong")
	if m := e.wantStore(v1alpha1.ReasonStoreInvalidSpec); !strings.Contains(m, "needs a namespace") {
		t.Errorf("without a namespace the store says %q", m)
	}
	update(e, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.name}}, password(e.ns("ops")))
	e.wantStore(v1alpha1.ReasonStoreValid)
	e.externalSecret("shop", "db")
	e.wantReady("shop", v1alpha1.ReasonSecretSynced)
}

// TestDeniedRead has a provider change its password. The first object whose read it refuses tells the
// store, which then holds the others, long before it would have been validated again.
func TestDeniedRead(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{}, func(s *fakev1.ClusterFakeStore) { s.Spec.RefreshInterval = "10h" })
	e.backend.Put("db", []byte("one"))
	for _, n := range []string{"one", "two"} {
		e.namespace(n, nil)
	}
	e.externalSecret("one", "db")
	e.wantReady("one", v1alpha1.ReasonSecretSynced)
	e.wantStore(v1alpha1.ReasonStoreValid)
	e.backend.SetPassword("changed")
	e.externalSecret("two", "db")
	e.wantStore(v1alpha1.ReasonStoreAuthFailed)
	e.wantReady("two", v1alpha1.ReasonStoreNotReady)
	since := time.Now()
	update(e, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns("one"), Name: "db"}}, func(es *v1alpha1.ExternalSecret) {
		es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	e.wantReady("one", v1alpha1.ReasonStoreNotReady)
	e.wantUntouched(since)
	if v := e.value("one"); v != "one" {
		t.Errorf("the Secret holds %q, want it as it was", v)
	}
}

// TestWarnings has a check that succeeds and warns: the store is valid, and an event says what to look at,
// once for each warning.
func TestWarnings(t *testing.T) {
	e := newEnv(t, v1alpha1.ClusterStoreSpec{}, func(s *fakev1.ClusterFakeStore) { s.Spec.RefreshInterval = "1s" })
	e.backend.Inject(fake.Fault{Call: fake.CallCheck, Err: provider.Warnings{"the token ends soon"}})
	e.wantStore(v1alpha1.ReasonStoreValid)
	checks := len(e.backend.Calls(fake.CallCheck))
	controlplane.Eventually(t, func() string {
		if n := len(e.backend.Calls(fake.CallCheck)) - checks; n < 3 {
			return "it was not checked again"
		}
		return ""
	})
	controlplane.Eventually(t, func() string {
		list := &corev1.EventList{}
		if err := api.List(t.Context(), list, client.InNamespace("default")); err != nil {
			return err.Error()
		}
		count := int32(0)
		for _, ev := range list.Items {
			if ev.InvolvedObject.Name == e.name && ev.Reason == "StoreWarning" && ev.Message == "the token ends soon" {
				count += max(ev.Count, 1)
			}
		}
		if count != 1 {
			return fmt.Sprintf("%d events, want one", count)
		}
		return ""
	})
}
