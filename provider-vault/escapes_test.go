package main

import (
	"net/http"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// TestEscapes tries to read secrets of namespace bank from namespace shop, with a token that can read
// everything.
func TestEscapes(t *testing.T) {
	t.Parallel()
	const ns = "shop-escapes"
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/*" { capabilities = ["read", "list"] }`)
	for _, key := range []string{ns + "/db", "bank/db", "common/db"} {
		srv.Do(http.MethodPost, "secret/data/"+key, vaulttest.M{"data": vaulttest.M{"password": "x"}})
	}
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("vault", map[string]string{"token": srv.Token(vaulttest.M{"policies": []string{"reader"}})})
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	callsOf := func(srv *vaulttest.Server) func() []string {
		return func() []string {
			all := []string{}
			for _, c := range srv.Calls() {
				all = append(all, c.Method+" "+c.Path)
			}
			return all
		}
	}

	token := ref("vault", "token")
	token.Namespace = ns
	spec := v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: srv.URL, Auth: &v1alpha1.VaultAuth{TokenSecretRef: &token}}}
	t.Run("ClusterVaultKV", func(t *testing.T) {
		s := newClusterStore(spec, common.ClusterStoreSpec{Conditions: []common.StoreCondition{{AllowedKeys: []string{"${namespace}/*", "common/db"}}}})
		s.Name = "escapes"
		suite.Escapes(t, ns, s, ns+"/db", map[string]operatortest.Escape{
			"Foreign":    operatortest.Key("The key of the other namespace's secret is denied.", "bank/db"),
			"Data":       operatortest.Key("A key that starts with data/ is denied.", "data/bank/db"),
			"Metadata":   operatortest.Key("A key that starts with metadata/ is denied.", "metadata/bank/db"),
			"Mount":      operatortest.Key("A key that starts with the mount is denied.", "secret/data/bank/db"),
			"Absolute":   operatortest.Key("A key that starts with a slash and the mount is denied.", "/secret/data/bank/db"),
			"Version":    {Why: "The version field does not change the denial.", Ref: common.RemoteRef{Key: "bank/db", Version: "1"}},
			"NoVersion":  {Why: "A version with a query parameter is rejected as invalid.", Ref: common.RemoteRef{Key: "common/db", Version: "1&list=true"}, Invalid: true},
			"Everything": operatortest.Find("A find without a path is denied.", ""),
		}, callsOf(srv))
	})
	t.Run("VaultKV", func(t *testing.T) { // The credentials that the store refers to exist.
		other := vaulttest.Start(t) // The other server records only the calls of this test.
		calls := callsOf(other)
		spec := spec
		spec.Server = other.URL
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"Namespace": {Why: "A namespaced store reads only Secrets in its own namespace.", Store: newStore(ns, spec), Want: common.ReasonStoreInvalidSpec, Message: "spec.auth.tokenSecretRef: Secret vault must not name a namespace"},
		}, calls)
		if all := calls(); len(all) > 0 {
			t.Errorf("a store that names a namespace made calls: %v", all)
		}
	})
}
