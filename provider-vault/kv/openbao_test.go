package kv

import (
	"net/http"
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/conformance"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// TestAnswersOfOpenBao uses answers that differ between OpenBao and Vault, taken from OpenBao's source. See
// also TestExpiredTokenOfOlderServers.
func TestAnswersOfOpenBao(t *testing.T) {
	const noNamespace = "namespace not found"
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	cases := map[string]struct {
		reason string
		on     func(vaulttest.Call) bool
		answer http.HandlerFunc
		auth   v1alpha1.VaultAuth // default: appRole
		want   string
	}{
		"DirectoryAway": {
			reason: "an LDAP server that cannot be reached is 400 instead of 500",
			on:     vaulttest.IsLogin,
			answer: vaulttest.RefuseWith(http.StatusBadRequest, `1 error occurred: * error connecting to host "ldap://directory": LDAP Result Code 200 "Network Error": dial tcp: connection refused`),
			auth:   v1alpha1.VaultAuth{LDAP: &v1alpha1.PasswordAuth{Username: "bob", SecretRef: ref("wrong")}},
			want:   "Unavailable: spec.auth.ldap: Vault cannot reach the LDAP server",
		},
		"NoNamespaceOfAuth": {
			reason: "a missing namespace has its own 404, which is not an error of the credentials",
			on:     vaulttest.IsLogin,
			answer: vaulttest.RefuseWith(http.StatusNotFound, noNamespace),
			want:   "Invalid: spec.auth.appRole: the auth method does not exist at Vault; correct its path, or spec.namespace",
		},
		"NoNamespaceOfSecrets": {
			reason: "a missing namespace does not mean that a secret is missing",
			on:     func(c vaulttest.Call) bool { return !vaulttest.IsLogin(c) },
			answer: vaulttest.RefuseWith(http.StatusNotFound, noNamespace),
			want:   `Invalid: secret "shop/db": the path does not exist at Vault; check spec.path, spec.version and spec.namespace`,
		},
	}
	result := conformance.Result{Kind: "VaultKV", Service: "OpenBao, recorded answers that differ from Vault's", Capability: provider.CapabilityRead}
	defer func() { result.Log(t) }()
	for name, tc := range cases {
		passed := t.Run(name, func(t *testing.T) {
			defer srv.Inject(tc.on, tc.answer)()
			s := appRole(srv.URL)
			if tc.auth != (v1alpha1.VaultAuth{}) {
				s.Spec.Auth = &tc.auth
			}
			if got := read1(t, connect(t, s, secrets)); !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s: got %s, want %s…", tc.reason, got, tc.want)
			}
		})
		if passed {
			result.Passed++
		} else {
			result.Failed++
		}
	}
}
