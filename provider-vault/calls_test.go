package main

import (
	"encoding/json"
	"net/http"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// TestCalls counts the reads and logins that objects cause.
func TestCalls(t *testing.T) {
	t.Parallel()
	const ns = "calls"
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/*" { capabilities = ["read", "list"] }`)
	enableKubernetes(t, srv)
	srv.Do(http.MethodPost, "auth/kubernetes/role/shop", vaulttest.M{
		"bound_service_account_names": "default", "bound_service_account_namespaces": ns, "token_policies": "reader",
	})
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		srv.Do(http.MethodPost, "secret/data/"+key, vaulttest.M{"data": json.RawMessage(operatortest.TenProperties)})
	}
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)

	spec := func(namespace string) v1alpha1.VaultKVSpec {
		return v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: srv.URL, Auth: &v1alpha1.VaultAuth{Kubernetes: &v1alpha1.KubernetesAuth{
			Role: "shop", ServiceAccountRef: &common.ServiceAccountSelector{Name: "default", Namespace: namespace},
		}}}}
	}
	for kind, s := range map[string]provider.Object{
		"VaultKV": newStore(ns, spec("")), "ClusterVaultKV": newClusterStore(spec(ns), common.ClusterStoreSpec{}),
	} {
		t.Run(kind, func(t *testing.T) {
			srv.Reset()
			s.SetName("calls")
			suite.Calls(t, ns, s, keys,
				func(key string) int { return srv.Count(vaulttest.On("secret/data/" + key)) },
				func() int { return srv.Count(vaulttest.IsLogin) })
		})
	}
}
