package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// shop adds the KV v2 engine "secret" to a server, and the AppRole shop that can read it. It returns a store in
// a namespace that logs in with it, validates once a second, and makes no retries.
func shop(t *testing.T, srv *vaulttest.Server, url, namespace, name string) *v1alpha1.VaultKV {
	t.Helper()
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/data/*" { capabilities = ["read"] }`)
	srv.Enable("approle")
	srv.Do(http.MethodPost, "auth/approle/role/shop", vaulttest.M{"token_policies": "reader", "token_ttl": "1h"})
	secretID := srv.Do(http.MethodPost, "auth/approle/role/shop/secret-id", nil)["secret_id"].(string)
	suite.For(t).In(namespace).Source("vault", map[string]string{"secretId": secretID})
	return &v1alpha1.VaultKV{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.VaultKVSpec{
			StoreSpec: common.StoreSpec{SourceSpec: common.SourceSpec{ValidationInterval: "1s"}},
			Path:      "secret",
			VaultServer: v1alpha1.VaultServer{RetrySpec: common.RetrySpec{RetrySettings: &common.RetrySettings{MaxRetries: new(int32)}}, Server: url, Auth: &v1alpha1.VaultAuth{AppRole: &v1alpha1.AppRoleAuth{
				RoleID:    srv.Do(http.MethodGet, "auth/approle/role/shop/role-id", nil)["role_id"].(string),
				SecretRef: ref("vault", "secretId"),
			}}},
		},
	}
}

// set writes a secret with one property.
func set(srv *vaulttest.Server, key, value string) {
	srv.Do(http.MethodPost, "secret/data/"+key, vaulttest.M{"data": vaulttest.M{"password": value}})
}

// wantStore waits until the Ready condition of a store has the status and reason in want, and message if it is
// set.
func wantStore(t *testing.T, s *v1alpha1.VaultKV, want, message string) {
	t.Helper()
	controlplane.Eventually(t, func() string {
		got, gotMessage := suite.For(t).Ready(s), message
		if c := meta.FindStatusCondition(s.Status.Conditions, common.ConditionReady); c != nil && message != "" {
			gotMessage = c.Message
		}
		return cmp.Diff([]string{want, message}, []string{got, gotMessage})
	})
}

func update(t *testing.T, o client.Object, change func()) {
	t.Helper()
	if err := suite.API.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	change()
	if err := suite.API.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// TestNewAuthority gives the server a certificate of another authority, and then an expired one, while the
// operator is running. The operator uses the changed authorities without a restart.
func TestNewAuthority(t *testing.T) {
	t.Parallel()
	srv := vaulttest.Start(t, vaulttest.WithTLS())
	first, second := srv.TLS.PEM, vaulttest.NewAuthority(t)
	suite.For(t).Namespace("tls", nil)
	plain := shop(t, srv, srv.Address, "tls", "")
	set(srv, "db", "one")

	secret := suite.For(t).In("tls").Source("authority", map[string]string{"ca.crt": string(first)})
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tls", Name: "authority"}, Data: map[string]string{"ca.crt": string(first)}}
	suite.For(t).Create(configMap)
	type spec = v1alpha1.VaultKVSpec
	provided := func(kind common.CAProviderType) func(*spec) {
		return func(s *spec) {
			s.CAProvider = &common.CAProvider{Type: kind, SecretKeySelector: ref("authority", "ca.crt")}
		}
	}
	cases := map[string]struct {
		field  string
		use    func(*spec)
		repair func(*v1alpha1.VaultKV)
	}{
		"secret": {"spec.caProvider", provided("Secret"), func(*v1alpha1.VaultKV) {
			update(t, secret, func() { secret.Data["ca.crt"] = second.PEM })
		}},
		"configmap": {"spec.caProvider", provided("ConfigMap"), func(*v1alpha1.VaultKV) {
			update(t, configMap, func() { configMap.Data["ca.crt"] = string(second.PEM) })
		}},
		"bundle": {"spec.caBundle", func(s *spec) { s.CABundle = first }, func(s *v1alpha1.VaultKV) {
			update(t, s, func() { s.Spec.CABundle = second.PEM })
		}},
	}
	stores := map[string]*v1alpha1.VaultKV{}
	for name, tc := range cases {
		s := plain.DeepCopy()
		s.Name = name
		tc.use(&s.Spec)
		suite.For(t).Create(s)
		stores[name] = s
	}
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	wantSynced := func(store, name string) {
		t.Helper()
		suite.For(t).Create(operatortest.ExternalSecret("tls", name, "VaultKV", store, "db", "password"))
		controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.For(t).In("tls").Data(name)["password"]) })
	}
	for name, s := range stores {
		wantStore(t, s, "True Valid", "")
		wantSynced(name, name+"-before")
	}

	srv.Certify(second, time.Now().Add(time.Hour))
	for name, s := range stores {
		wantStore(t, s, "False Unreachable", cases[name].field+": the server's certificate is signed by an authority that is not trusted; store the certificate of that authority there")
	}
	for name, s := range stores {
		cases[name].repair(s)
		wantStore(t, s, "True Valid", "")
		wantSynced(name, name+"-after")
	}

	srv.Certify(second, time.Now().Add(-time.Minute))
	for _, s := range stores {
		wantStore(t, s, "False Unreachable", "spec.server: the server's certificate, or that of its authority, has expired or is not valid yet; renew it")
	}
}
