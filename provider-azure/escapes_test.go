package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"strings"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/operator"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
	"github.com/direct-secrets/direct-secrets/provider-azure/manifests"
)

// TestEscapes tries to read secrets of namespace bank from namespace stall, with an identity that can read the whole vault. The vault
// speaks TLS.
func TestEscapes(t *testing.T) {
	const ns = "stall"
	certified := httptest.NewTLSServer(nil) // The test only uses its certificate.
	certified.Close()
	srv := startEmulator(t, emulator.WithTLS(&tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	for _, name := range []string{ns + "-db", "bank-db", "common"} {
		put(t, srv, name, `{"password":"x"}`)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("azure", map[string]string{"secret": "s3cret"})
	suite.StartAlone(t, "provider-azure", manifests.Permissions, func(opts ...operator.Option) *operator.Operator {
		return operatorOf(azureconfig.Network{RootCAs: roots}, opts...)
	})
	s := newClusterStore("escapes", specOf(srv, bySecret(ns)), common.ClusterStoreSpec{Conditions: []common.StoreCondition{{AllowedKeys: []string{"${namespace}-*", "common"}}}})
	suite.Escapes(t, ns, s, ns+"-db", map[string]operatortest.Escape{
		"Foreign":     operatortest.Key("The name of the other namespace's secret is denied.", "bank-db"),
		"Prefix":      operatortest.Key("The prefix of secrets does not change the denial.", "secret/bank-db"),
		"OwnPrefix":   operatortest.Key("The prefix of an allowed name is denied, because only the name is allowed.", "secret/common"),
		"Twice":       operatortest.Key("A repeated prefix is denied.", "secret/secret/bank-db"),
		"Certificate": operatortest.Key("A certificate of the other namespace is denied.", "cert/bank-db"),
		"PrivateKey":  operatortest.Key("A key of the other namespace is denied.", "key/bank-db"),
		"URL":         operatortest.Key("The ID of a secret is denied.", srv.URL()+"/secrets/bank-db"),
		"Path":        operatortest.Key("A path of the API is denied.", "secrets/bank-db"),
		"Last":        {Why: "A name that matches a pattern, with an appended version, is rejected as invalid.", Ref: common.RemoteRef{Key: ns + "-db/" + strings.Repeat("a", 32)}, Invalid: true},
		"VersionUp":   {Why: "A version that contains a path is rejected as invalid.", Ref: common.RemoteRef{Key: "common", Version: "x/../../bank-db"}, Invalid: true},
		"Everything":  operatortest.Find("A find without a path is denied.", ""),
	}, func() []string {
		all := []string{}
		for _, c := range srv.Calls() {
			all = append(all, c.Method+" "+c.Path)
		}
		return all
	})
}

// TestBadStores creates stores that cannot be used, among them some that reach for the credentials of others. None reads a secret.
func TestBadStores(t *testing.T) {
	const (
		ns      = "market"
		invalid = common.ReasonStoreInvalidSpec
		failed  = common.ReasonStoreAuthFailed
		secret  = "spec.auth.clientSecret.clientSecretRef: "
		account = "spec.auth.serviceAccountRef"
	)
	srv := startEmulator(t)
	srv.SetApp("bank", emulator.App{Subjects: []string{"system:serviceaccount:bank:default"}})
	foreign := startEmulator(t, emulator.WithTenant("22222222-2222-2222-2222-222222222222"))
	foreign.SetApp(reader, emulator.App{Secrets: []string{"s3cret"}})
	certified := httptest.NewTLSServer(nil) // The test only uses its certificate, which is not trusted.
	certified.Close()
	untrusted := startEmulator(t, emulator.WithTLS(&tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("azure", map[string]string{"secret": "s3cret", "wrong": "c4n4ry"})
	suite.Start(t, "provider-azure", manifests.Permissions, newOperator)

	with := func(change func(*v1alpha1.AzureSpec)) *v1alpha1.AzureKeyVault {
		spec := specOf(srv, bySecret(""))
		change(&spec)
		return newStore(ns, "", spec)
	}
	bad := map[string]operatortest.BadStore{
		"NoSecret":  {Why: "The Secret does not exist.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth.ClientSecret.ClientSecretRef.Name = "none" }), Want: invalid, Message: secret + "Secret market/none does not exist"},
		"Namespace": {Why: "A namespaced store reads only Secrets in its own namespace.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth = bySecret("bank") }), Want: invalid, Message: secret + "Secret azure must not name a namespace"},
		"Account":   {Why: "A namespaced store gets only tokens of ServiceAccounts in its own namespace.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth = byToken("bank", "bank") }), Want: invalid, Message: account + ": ServiceAccount default must not name a namespace"},
		"Annotated": {Why: "A namespaced store reads only annotations of ServiceAccounts in its own namespace.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth = byToken("bank", "") }), Want: invalid, Message: account + ": ServiceAccount default must not name a namespace"},
		"Bare":      {Why: "The ServiceAccount has no annotations.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth = byToken("", "") }), Want: invalid, Message: account + ".clientID: is not set, and ServiceAccount default has no annotation"},
		"Client":    {Why: "A client that trusts the ServiceAccount of another namespace does not trust this one.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth = byToken("", "bank") }), Want: failed, Message: account + ": no federated credential of the client has the subject"},
		"Wrong":     {Why: "The client secret is wrong.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth.ClientSecret.ClientSecretRef.Key = "wrong" }), Want: failed, Message: "spec.auth.clientSecret: the client secret is wrong"},
		"Unknown":   {Why: "The application does not exist.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth.ClientSecret.ClientID = "unknown" }), Want: failed, Message: "spec.auth.clientSecret: the tenant has no such application"},
		"Tenant":    {Why: "The vault is part of another tenant.", Store: with(func(s *v1alpha1.AzureSpec) { s.VaultURL = foreign.URL() }), Want: failed, Message: "spec.tenantID: the tenant does not exist"},
		"Machine":   {Why: "A namespaced store does not get the operator's own identity.", Store: with(func(s *v1alpha1.AzureSpec) { s.Auth = v1alpha1.AzureAuth{ManagedIdentity: &v1alpha1.ManagedIdentity{}} }), Want: invalid, Message: "spec.auth.managedIdentity: "},
		"Elsewhere": {Why: "A host outside the cloud gets no token.", Store: with(func(s *v1alpha1.AzureSpec) { s.VaultURL = "https://vault.azure.net.evil.example" }), Want: invalid, Message: "spec.vaultURL: is not a vault of the environment PublicCloud"},
		"UnknownCA": {Why: "The certificate of the vault is not trusted.", Store: with(func(s *v1alpha1.AzureSpec) { s.VaultURL = untrusted.URL() }), Want: common.ReasonStoreUnreachable, Message: "the TLS certificate of Azure"},
		"PlainHTTP": {Why: "Plain HTTP to another host is rejected.", Store: with(func(s *v1alpha1.AzureSpec) { s.VaultURL = "http://shop.vault.azure.net" }), Want: invalid, Message: "spec.vaultURL: plain http"},
	}
	reads := func() []string {
		all := []string{}
		for _, c := range append(srv.Calls(emulator.CallGet), append(foreign.Calls(emulator.CallGet), untrusted.Calls(emulator.CallGet)...)...) {
			all = append(all, c.Path)
		}
		return all
	}
	suite.BadStores(t, ns, bad, reads)
}
