package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// isAppRoleLogin selects the logins with the AppRole.
func isAppRoleLogin(c vaulttest.Call) bool { return c.Path == "auth/approle/login" }

// every selects all calls.
func every(vaulttest.Call) bool { return true }

// TestOutages runs an operator through outages of its server. The operator needs no restart, does not change
// the Secret during the outage, and logs in no more often than necessary.
func TestOutages(t *testing.T) {
	t.Parallel()
	srv := vaulttest.Start(t, vaulttest.Persistent())
	suite.For(t).Namespace("outages", nil)
	s := shop(t, srv, srv.URL, "outages", "prod")
	set(srv, "db", "0")
	suite.For(t).Create(s)
	es := operatortest.ExternalSecret("outages", "db", "VaultKV", "prod", "db", "password")
	es.Spec.RefreshInterval = "1s"
	suite.For(t).Create(es)
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	synced := func(value string) {
		t.Helper()
		controlplane.Eventually(t, func() string {
			return cmp.Diff([]string{value, "True SecretSynced"}, []string{suite.For(t).In("outages").Data("db")["password"], suite.For(t).Ready(es)})
		})
	}
	synced("0")
	wantStore(t, s, "True Valid", "")

	cases := []struct {
		name, reason string
		// begin starts the outage; end ends it.
		begin, end func()
		// wantMessage is the status of the store during the outage; empty if the store stays valid.
		wantMessage string
		// logins is the number of logins that follow.
		logins int
	}{
		{
			name: "Seal", reason: "A token stays valid while the server is sealed.",
			begin: srv.Seal, wantMessage: "Vault is sealed, or not started yet", end: srv.Unseal,
		},
		{
			name: "Restart", reason: "A token stays valid when the server restarts at the same address.",
			begin: srv.Stop, wantMessage: "Vault, or a proxy in front of it, cannot reach a system that it depends on", end: srv.Restart,
		},
		{
			name: "RestartWithoutTokens", reason: "A server that has lost all tokens costs one login.",
			begin: func() {
				reach := srv.Inject(every, vaulttest.Refuse(http.StatusBadGateway))
				if n := srv.RevokeTokens(); n != 1 {
					t.Errorf("%d tokens, want the one of the operator", n)
				}
				srv.Stop()
				reach()
			},
			wantMessage: "Vault, or a proxy in front of it, cannot reach a system that it depends on", end: srv.Restart, logins: 1,
		},
		{
			name: "Revoked", reason: "A revoked token costs one login.",
			begin: func() { srv.RevokeTokens() }, end: func() {}, logins: 1,
		},
	}
	for i, tc := range cases {
		before := srv.Count(isAppRoleLogin)
		secret := &corev1.Secret{}
		if err := suite.API.Get(t.Context(), client.ObjectKeyFromObject(es), secret); err != nil {
			t.Fatal(err)
		}
		was := secret.DeepCopy()
		tc.begin()
		if tc.wantMessage != "" {
			wantStore(t, s, "False Unreachable", tc.wantMessage)
			controlplane.Eventually(t, func() string { return cmp.Diff("False StoreNotReady", suite.For(t).Ready(es)) })
			if err := suite.API.Get(t.Context(), client.ObjectKeyFromObject(es), secret); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(was, secret); diff != "" {
				t.Errorf("%s: the Secret has changed while the server was away: -want, +got:\n%s", tc.name, diff)
			}
		}
		tc.end()
		value := fmt.Sprint(i + 1)
		set(srv, "db", value)
		synced(value)
		wantStore(t, s, "True Valid", "")
		if n := srv.Count(isAppRoleLogin) - before; n != tc.logins {
			t.Errorf("%s: %s %d logins, want %d", tc.name, tc.reason, n, tc.logins)
		}
	}
}
