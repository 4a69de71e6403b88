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

// TestEscapes tries to get from namespace shop at secrets of bank, with a token that may read all.
func TestEscapes(t *testing.T) {
	const ns = "shop-escapes"
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/*" { capabilities = ["read", "list"] }`)
	for _, key := range []string{ns + "/db", "bank/db", "common/db"} {
		srv.Do(http.MethodPost, "secret/data/"+key, vaulttest.M{"data": vaulttest.M{"password": "x"}})
	}
	suite.Namespace(t, ns, nil)
	suite.Secret(t, ns, "vault", map[string]string{"token": srv.Token(vaulttest.M{"policies": []string{"reader"}})})
	suite.Start(t, "provider-vault", manifests.Rights, newOperator)
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
			"Foreign":       operatortest.Key("The key itself.", "bank/db"),
			"Up":            operatortest.Key("No way up.", ns+"/../bank/db"),
			"UpFirst":       operatortest.Key("Nor at the beginning.", "../data/bank/db"),
			"UpFar":         operatortest.Key("Nor out of the mount.", ns+"/../../../sys/mounts"),
			"Here":          operatortest.Key("Nor a detour.", ns+"/./../bank/db"),
			"Encoded":       operatortest.Key("Nor an encoded one.", ns+"/%2e%2e/bank/db"),
			"EncodedSlash":  operatortest.Key("Nor an encoded slash.", ns+"/..%2fbank%2fdb"),
			"Data":          operatortest.Key("data belongs to the address, not to the key.", "data/bank/db"),
			"Metadata":      operatortest.Key("So does metadata.", "metadata/bank/db"),
			"Mount":         operatortest.Key("So does the mount.", "secret/data/bank/db"),
			"Absolute":      operatortest.Key("Also with a slash.", "/secret/data/bank/db"),
			"LeadingSlash":  operatortest.Key("A slash before the key makes another one of it.", "/"+ns+"/db"),
			"TrailingSlash": operatortest.Key("One behind it, too.", ns+"/db/"),
			"TwoSlashes":    operatortest.Key("And two within it.", ns+"//bank/db"),
			"Query":         operatortest.Key("What a URL gives a meaning has none.", "common/db?version=1"),
			"Fragment":      operatortest.Key("Nor has a fragment.", "common/db#x"),
			"Case":          operatortest.Key("Letters are as they are.", "Common/db"),
			"LookAlike":     operatortest.Key("A letter that looks alike is another one.", "соmmon/db"),
			"FullWidth":     operatortest.Key("So is a slash.", ns+"／db"),
			"Longer":        operatortest.Key("A namespace that begins so is another one.", ns+"-2/db"),
			"Version":       {Why: "A version beside the key makes no difference.", Ref: common.RemoteRef{Key: "bank/db", Version: "1"}},
			"NoVersion":     {Why: "What is no version is none.", Ref: common.RemoteRef{Key: "common/db", Version: "1&list=true"}, Invalid: true},
			"Everything":    operatortest.Find("A find without a path looks at all.", ""),
			"Beginning":     operatortest.Find("The name of the namespace begins that of others.", ns),
			"FindUp":        operatortest.Find("No way up.", ns+"/../"),
		}, callsOf(srv))
	})
	t.Run("VaultKV", func(t *testing.T) { // The credentials that it names exist.
		other := vaulttest.Start(t) // Nobody else reads it.
		calls := callsOf(other)
		spec := spec
		spec.Server = other.URL
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"Namespace": {Why: "A namespaced store reads beside itself.", Store: newStore(ns, spec), Want: common.ReasonStoreInvalidSpec, Says: "spec.auth.tokenSecretRef: Secret vault must not name a namespace"},
		}, calls)
		if all := calls(); len(all) > 0 {
			t.Errorf("a store that names a namespace made calls: %v", all)
		}
	})
}
