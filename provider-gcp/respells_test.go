package main

import (
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
)

// TestRespelled pushes by all keys of a secret.
func TestRespelled(t *testing.T) {
	const ns = "respelled"
	srv := startEmulator(t)
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("gcp", map[string]string{"key.json": string(srv.Key(reader))})
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)
	spec := func(namespace string) v1alpha1.GCPSpec {
		return v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: byKey(namespace)}
	}
	twin := newClusterStore(spec(ns), common.ClusterStoreSpec{})
	twin.Name = "respelled"
	keys := func(name, _ string) []string {
		return []string{name, "projects/" + emulator.DefaultProject + "/secrets/" + name}
	}
	suite.Respells(t, ns, []provider.Object{newStore(ns, "prod", spec("")), twin}, map[string]operatortest.Spellings{
		"whole":    {Keys: keys, Properties: []string{""}},
		"property": {Keys: keys, Properties: []string{`tls\.crt`, "tls.crt", `t\ls\.crt`}},
		"nested":   {Keys: keys, Properties: []string{"a.0", `a.\0`, `\a.0`}},
	})
}
