package externalsecret_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/testenv"
	fakev1 "github.com/direct-secrets/direct-secrets/common/provider/fake/apis/v1alpha1"
)

// TestAdmission admits namespaces to a store and excludes them, by their labels and by the store's conditions. In an
// excluded namespace the Secret stays as it is, and no call is made.
func TestAdmission(t *testing.T) {
	selects := []v1alpha1.StoreCondition{{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}}}}
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{Conditions: selects})
	e.Backend.Put("db", []byte("one"))
	e.CreateNamespace("in", map[string]string{"team": "shop"})
	e.CreateNamespace("out", nil)
	e.CreateExternalSecret("in", "db")
	e.CreateExternalSecret("out", "db")
	e.In("in").WantReady("db", v1alpha1.ReasonSecretSynced)
	if m := e.In("out").WantReady("db", v1alpha1.ReasonForbidden).Message; !strings.Contains(m, e.Namespaced("out")) || !strings.Contains(m, "spec.conditions") {
		t.Errorf("the message of Ready is %q, want it to name the namespace and the field", m)
	}
	if v := e.In("out").Data("db")["value"]; v != "" {
		t.Errorf("a namespace that is not admitted got %q", v)
	}

	label := func(namespace, team string) {
		testenv.Update(e.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespaced(namespace)}}, func(n *corev1.Namespace) {
			if n.Labels == nil {
				n.Labels = map[string]string{}
			}
			n.Labels["team"] = team
		})
	}
	label("out", "shop")
	e.In("out").WantReady("db", v1alpha1.ReasonSecretSynced)
	label("in", "bank")
	e.In("in").WantReady("db", v1alpha1.ReasonForbidden)
	since := time.Now()
	testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespaced("in"), Name: "db"}}, func(es *v1alpha1.ExternalSecret) {
		es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: "1"}
	})
	e.In("in").WantReady("db", v1alpha1.ReasonForbidden)
	e.WantUntouched(since)
	if v := e.In("in").Data("db")["value"]; v != "one" {
		t.Errorf("the Secret of a namespace that is no longer admitted holds %q, want it as it was", v)
	}

	conditions := func(c ...v1alpha1.StoreCondition) {
		testenv.Update(e.Client, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}, func(s *fakev1.ClusterFakeStore) { s.Spec.Conditions = c })
	}
	conditions(v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{Namespaces: []string{e.Namespaced("in")}}})
	e.In("in").WantReady("db", v1alpha1.ReasonSecretSynced)
	e.In("out").WantReady("db", v1alpha1.ReasonForbidden)
	conditions(v1alpha1.StoreCondition{NamespaceCondition: v1alpha1.NamespaceCondition{NamespaceRegexes: []string{"("}}})
	if m := e.WantStore(e.Name, v1alpha1.ReasonStoreInvalidSpec).Message; !strings.HasPrefix(m, "spec.conditions[0].namespaceRegexes[0]: ") {
		t.Errorf("the message of the store is %q, want it to name the field", m)
	}
	e.In("in").WantReady("db", v1alpha1.ReasonForbidden)
	conditions()
	e.In("in").WantReady("db", v1alpha1.ReasonSecretSynced)
	e.In("out").WantReady("db", v1alpha1.ReasonSecretSynced)
}

// TestAllowedKeys reads keys that are not allowed, by every field of a spec that can name one.
func TestAllowedKeys(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{Conditions: []v1alpha1.StoreCondition{{AllowedKeys: []string{"${namespace}/*"}}}})
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
	e.Backend.Put("bank/db", []byte("theirs"))
	since := time.Now()
	for name, change := range namespaces {
		e.CreateNamespace(name, nil)
		e.Backend.Put(e.Namespaced(name)+"/db", []byte("ours"))
		e.CreateExternalSecret(name, e.Namespaced(name)+"/db", change)
	}
	for name := range namespaces {
		e.In(name).WantReady("db", v1alpha1.ReasonForbidden)
		if v := e.In(name).Data("db")["value"]; v != "" {
			t.Errorf("%s: the Secret holds %q, want none", name, v)
		}
	}
	e.WantUntouched(since)

	e.CreateNamespace("own", nil)
	e.Backend.Put(e.Namespaced("own")+"/db", []byte("ours"))
	e.CreateExternalSecret("own", e.Namespaced("own")+"/db", func(es *v1alpha1.ExternalSecret) {
		es.Spec.DataFrom = []v1alpha1.DataFromEntry{{Find: &v1alpha1.Find{Path: e.Namespaced("own") + "/", Name: &v1alpha1.FindName{RegExp: ".*"}}}}
	})
	e.In("own").WantReady("db", v1alpha1.ReasonSecretSynced)
	if v := e.In("own").Data("db")["value"]; v != "ours" {
		t.Errorf("the Secret holds %q, want the value of the namespace's own key", v)
	}
}

// TestManifestNamespace lets each namespace log in with its own credentials. They do not affect other namespaces, and
// changes take effect at once.
func TestManifestNamespace(t *testing.T) {
	e := testenv.NewCluster(t, v1alpha1.ClusterStoreSpec{ScopeSpec: v1alpha1.ScopeSpec{AuthenticationScope: v1alpha1.ScopeManifestNamespace}}, testenv.WithClusterAuth(""))
	e.Backend.SetPassword("right")
	e.Backend.Put("db", []byte("one"))
	for _, n := range []string{"right", "wrong", "none"} {
		e.CreateNamespace(n, nil)
	}
	e.In("right").Credentials("password", "right")
	wrong := e.In("wrong").Credentials("password", "wrong")
	for _, n := range []string{"right", "wrong", "none"} {
		e.CreateExternalSecret(n, "db")
	}
	e.WantStore(e.Name, v1alpha1.ReasonStoreValid)
	e.In("right").WantReady("db", v1alpha1.ReasonSecretSynced)
	if m := e.In("wrong").WantReady("db", v1alpha1.ReasonSecretSyncedError).Message; !strings.HasPrefix(m, "Denied: ") {
		t.Errorf("with a wrong password the message of Ready is %q", m)
	}
	if m := e.In("none").WantReady("db", v1alpha1.ReasonSecretSyncedError).Message; !strings.Contains(m, e.Namespaced("none")+"/credentials does not exist") {
		t.Errorf("without a Secret the message of Ready is %q", m)
	}
	testenv.Update(e.Client, wrong, func(s *corev1.Secret) { s.Data["password"] = []byte("right") })
	e.In("wrong").WantReady("db", v1alpha1.ReasonSecretSynced)
	e.In("none").Credentials("password", "right")
	e.In("none").WantReady("db", v1alpha1.ReasonSecretSynced)

	testenv.Update(e.Client, &fakev1.ClusterFakeStore{ObjectMeta: metav1.ObjectMeta{Name: e.Name}}, testenv.WithClusterAuth(e.Namespaced("right")))
	e.Eventually(func() string {
		for _, n := range []string{"right", "wrong", "none"} {
			testenv.Update(e.Client, &v1alpha1.ExternalSecret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespaced(n), Name: "db"}}, func(es *v1alpha1.ExternalSecret) {
				es.Annotations = map[string]string{v1alpha1.RefreshRequestAnnotation: time.Now().String()}
			})
			if m := e.In(n).WantReady("db", v1alpha1.ReasonSecretSyncedError).Message; !strings.Contains(m, "must not name a namespace") {
				return n + ": the message is " + m
			}
		}
		return ""
	})
}
