package main

import (
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/manifests"
)

// TestRespelled pushes by the title and the ID of an item.
func TestRespelled(t *testing.T) {
	const ns = "respelled"
	srv := start(t)
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("onepassword", map[string]string{"token": emulator.DefaultToken})
	suite.Start(t, "provider-onepassword", manifests.Permissions, newOperator)
	stores := []provider.Object{
		newStore(ns, "prod", specFor(srv.URL(), "", emulator.DefaultVault)),
		newClusterStore("respelled", specFor(srv.URL(), ns, emulator.DefaultVault), common.ClusterStoreSpec{}),
	}
	keys := func(name, _ string) []string {
		for _, i := range srv.Items(emulator.DefaultVault) {
			if i.Title == name {
				return []string{name, i.ID}
			}
		}
		return nil
	}
	suite.Respells(t, ns, stores, map[string]operatortest.Spellings{"property": {Keys: keys, Properties: []string{`tls\.crt`, "tls.crt", `t\ls\.crt`}}})
}
