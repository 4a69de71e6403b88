package main

import (
	"strings"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
)

// TestCalls counts the reads and logins that objects cause.
func TestCalls(t *testing.T) {
	const ns = "calls"
	srv := startEmulator(t)
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		srv.Put(key, []byte(operatortest.TenProperties))
	}
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("gcp", map[string]string{"key.json": string(srv.Key(reader))})
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)

	spec := func(namespace string) v1alpha1.GCPSpec {
		return v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: byKey(namespace)}
	}
	for kind, s := range map[string]provider.Object{
		"GCPSecretManager": newStore(ns, "", spec("")), "ClusterGCPSecretManager": newClusterStore(spec(ns), common.ClusterStoreSpec{}),
	} {
		t.Run(kind, func(t *testing.T) {
			srv.Reset()
			s.SetName("calls")
			suite.Calls(t, ns, s, keys,
				func(key string) (n int) {
					for _, c := range srv.Calls() {
						if strings.Contains(c.Name, "/secrets/"+key) {
							n++
						}
					}
					return n
				},
				func() int { return srv.Count(emulator.MethodToken) })
		})
	}
}
