package main

import (
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-azure/manifests"
)

// TestRespelled pushes by all keys of a secret.
func TestRespelled(t *testing.T) {
	const ns = "respelled"
	srv := startEmulator(t)
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("azure", map[string]string{"secret": "s3cret"})
	suite.Start(t, "provider-azure", manifests.Permissions, newOperator)
	stores := []provider.Object{newStore(ns, "prod", specOf(srv, bySecret(""))), newClusterStore("respelled", specOf(srv, bySecret(ns)), common.ClusterStoreSpec{})}
	keys := func(name, _ string) []string { return []string{name, "secret/" + name} }
	suite.Respells(t, ns, stores, map[string]operatortest.Spellings{
		"whole":    {Keys: keys, Properties: []string{""}},
		"property": {Keys: keys, Properties: []string{`tls\.crt`, "tls.crt", `t\ls\.crt`}},
		"nested":   {Keys: keys, Properties: []string{"a.0", `a.\0`, `\a.0`}},
	})
}
