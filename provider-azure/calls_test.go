package main

import (
	"strings"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
	"github.com/direct-secrets/direct-secrets/provider-azure/manifests"
)

// TestCalls counts the reads and logins that objects cause.
func TestCalls(t *testing.T) {
	const ns = "calls"
	srv := startEmulator(t)
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		put(t, srv, key, operatortest.TenProperties)
	}
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("azure", map[string]string{"secret": "s3cret"})
	suite.Start(t, "provider-azure", manifests.Permissions, newOperator)
	for kind, s := range map[string]provider.Object{
		"AzureKeyVault":        newStore(ns, "", specOf(srv, bySecret(""))),
		"ClusterAzureKeyVault": newClusterStore("", specOf(srv, bySecret(ns)), common.ClusterStoreSpec{}),
	} {
		t.Run(kind, func(t *testing.T) {
			srv.Reset()
			s.SetName("calls")
			suite.Calls(t, ns, s, keys,
				func(key string) (n int) {
					for _, c := range srv.Calls(emulator.CallGet) {
						if strings.Contains(c.Path+"/", "/secrets/"+key+"/") {
							n++
						}
					}
					return n
				},
				func() int { return srv.Count(emulator.CallToken) })
		})
	}
}
