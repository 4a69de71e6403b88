package main

import (
	"net/http"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// TestRespelled pushes by all spellings of a property.
func TestRespelled(t *testing.T) {
	const ns = "respelled"
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Policy("writer", `path "secret/*" { capabilities = ["read", "list", "create", "update", "patch", "delete"] }`)
	enableKubernetes(t, srv)
	srv.Do(http.MethodPost, "auth/kubernetes/role/shop", vaulttest.M{
		"bound_service_account_names": "default", "bound_service_account_namespaces": ns, "token_policies": "writer",
	})
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	spec := func(namespace string) v1alpha1.VaultKVSpec {
		return v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: srv.URL, Auth: &v1alpha1.VaultAuth{Kubernetes: &v1alpha1.KubernetesAuth{
			Role: "shop", ServiceAccountRef: &common.ServiceAccountSelector{Name: "default", Namespace: namespace},
		}}}}
	}
	one, two := newStore(ns, spec("")), newClusterStore(spec(ns), common.ClusterStoreSpec{})
	one.SetName("prod")
	two.SetName("respelled")
	suite.Respells(t, ns, []provider.Object{one, two}, map[string]operatortest.Spellings{"property": {Properties: []string{`tls\.crt`, "tls.crt", `t\ls\.crt`}}, "nested": {Properties: []string{"a.0", `a.\0`, `\a.0`}}})
}
