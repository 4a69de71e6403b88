package main

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
	"github.com/direct-secrets/direct-secrets/provider-azure/manifests"
)

// TestManyPages reads a vault with 60 secrets, pushes to a secret with 60 versions, and does both again after a restart of the operator.
// Key Vault links the pages with the port 443, and some pages are empty.
func TestManyPages(t *testing.T) {
	const ns, many = "pages", 60
	srv := startEmulator(t, emulator.WithAuthority("https://login.microsoftonline.com"))
	c := suite.For(t)
	c.Namespace(ns, nil)
	here := c.In(ns)
	here.Source("azure", map[string]string{"secret": "s3cret"})
	source := here.Source("source", map[string]string{"password": "one"})
	spec := specOf(srv, bySecret(""))
	spec.VaultURL = "https://shop.vault.azure.net"
	here.Create(newStore(ns, "prod", spec))
	for i := range many {
		put(t, srv, fmt.Sprintf("s-%03d", i), "x")
		put(t, srv, "pushed", strconv.Itoa(i))
	}
	es := operatortest.ExternalSecret(ns, "all", "AzureKeyVault", "prod", "")
	es.Spec.DataFrom = []common.DataFromEntry{{Find: &common.Find{Name: &common.FindName{RegExp: "^s-"}}}}
	here.Create(es)
	ps := &common.PushSecret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "push"}}
	ps.Spec.StoreRefs = []common.PushStoreRef{{Kind: "AzureKeyVault", Name: "prod"}}
	ps.Spec.Selector.Secret = &common.PushSecretSelector{Name: "source"}
	ps.Spec.Data = []common.PushData{{Match: common.PushMatch{SecretKey: "password", RemoteRef: common.PushRemoteRef{RemoteKey: "pushed"}}}}
	here.Create(ps)
	read := operatortest.ExternalSecret(ns, "copy", "AzureKeyVault", "prod", "pushed")
	read.Spec.Data = []common.DataEntry{{SecretKey: "password", RemoteRef: common.RemoteRef{Key: "pushed"}}}
	here.Create(read)
	for i, value := range []string{"one", "two"} {
		t.Run(value, func(t *testing.T) { // The end of a subtest stops the operator.
			suite.StartAlone(t, "provider-azure", manifests.Permissions, func(opts ...operator.Option) *operator.Operator {
				return operatorOf(azureconfig.Network{Wrap: srv.Divert(nil)}, opts...)
			})
			here := suite.For(t).In(ns)
			if i > 0 {
				put(t, srv, fmt.Sprintf("s-%03d", many), "x")
				here.Update(source, func() { source.Data["password"] = []byte(value) })
				here.Refresh(es, value)
			}
			here.Eventually(func() string {
				if n := len(here.Data("all")); n != many+i {
					return fmt.Sprintf("%d keys, want %d; %s", n, many+i, here.Condition(es))
				}
				return ""
			})
			reads := 0
			here.Eventually(func() string {
				reads++
				here.Refresh(read, fmt.Sprint(value, reads))
				return cmp.Diff(value, here.Data("copy")["password"])
			})
		})
	}
}
