package kv

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// M is a JSON object.
type M = vaulttest.M

// vault starts a server with the KV v2 engine "secret" and an AppRole that can read and list it. Its tokens are
// valid for ttl.
func vault(t testing.TB, ttl string, opts ...vaulttest.Option) (srv *vaulttest.Server, secrets creds) {
	t.Helper()
	srv = vaulttest.Start(t, opts...)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/*" { capabilities = ["read", "list"] }`)
	srv.Enable("approle")
	// Tests with wrong credentials would otherwise lock the role.
	srv.Do(http.MethodPost, "sys/auth/approle/tune", M{"user_lockout_config": M{"lockout_disable": true}})
	srv.Do(http.MethodPost, "auth/approle/role/shop", M{"token_policies": "reader", "token_ttl": ttl})
	return srv, creds{
		"role":   srv.Do(http.MethodGet, "auth/approle/role/shop/role-id", nil)["role_id"].(string),
		"secret": srv.Do(http.MethodPost, "auth/approle/role/shop/secret-id", nil)["secret_id"].(string),
		"wrong":  "wrong",
	}
}

// creds are the values of the Secrets and ConfigMaps of a test, by key. The objects' names are ignored.
type creds = vaulttest.Credentials

func ref(key string) common.SecretKeySelector {
	return common.SecretKeySelector{Name: "vault", Key: key}
}

// appRole returns a store that reads "secret" with the AppRole, without retries.
func appRole(url string, opts ...func(*v1alpha1.VaultKVSpec)) *v1alpha1.VaultKV {
	none := int32(0)
	s := &v1alpha1.VaultKV{Spec: v1alpha1.VaultKVSpec{
		Path: "secret",
		VaultServer: v1alpha1.VaultServer{
			RetrySpec: common.RetrySpec{RetrySettings: &common.RetrySettings{MaxRetries: &none}},
			Server:    url, Auth: &v1alpha1.VaultAuth{AppRole: &v1alpha1.AppRoleAuth{RoleRef: new(ref("role")), SecretRef: ref("secret")}},
		},
	}}
	s.Namespace, s.Name = "shop", "prod"
	for _, o := range opts {
		o(&s.Spec)
	}
	return s
}

func withAuth(a v1alpha1.VaultAuth) func(*v1alpha1.VaultKVSpec) {
	return func(s *v1alpha1.VaultKVSpec) { s.Auth = &a }
}

func withSecretID(key string) func(*v1alpha1.VaultKVSpec) {
	return func(s *v1alpha1.VaultKVSpec) { s.Auth.AppRole.SecretRef = ref(key) }
}

func connect(t testing.TB, s *v1alpha1.VaultKV, c creds) *Client {
	t.Helper()
	client, err := Connect(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := provider.Close(client); err != nil {
			t.Error(err)
		}
	})
	return client.(*Client)
}

// escaped returns a key as a part of an address.
func escaped(key string) string { return (&url.URL{Path: key}).EscapedPath() }

// put writes a secret of KV v2.
func put(srv *vaulttest.Server, key, object string, metadata map[string]string) error {
	err := srv.Try(http.MethodPost, "secret/data/"+escaped(key), M{"data": json.RawMessage(object)})
	if err == nil && metadata != nil {
		err = srv.Try(http.MethodPost, "secret/metadata/"+escaped(key), M{"custom_metadata": metadata})
	}
	return err
}

func mustPut(t testing.TB, srv *vaulttest.Server, key, object string) {
	t.Helper()
	if err := put(srv, key, object, nil); err != nil {
		t.Fatal(err)
	}
}
