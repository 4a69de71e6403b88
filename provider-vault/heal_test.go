package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// isAppRoleLogin hits the logins of the AppRole.
func isAppRoleLogin(c vaulttest.Call) bool { return c.Path == "auth/approle/login" }

// every hits all calls.
func every(vaulttest.Call) bool { return true }

// TestOutages has an operator live through what happens to a server. It needs no restart, leaves the
// Secret as it is for as long as the server is away, and logs in no more often than it must.
func TestOutages(t *testing.T) {
	srv := vaulttest.Start(t)
	suite.Namespace(t, "outages", nil)
	s := shop(t, srv, srv.URL, "outages", "prod")
	set(srv, "db", "0")
	suite.Create(t, s)
	es := operatortest.ExternalSecret("outages", "db", "VaultKV", "prod", "db", "password")
	es.Spec.RefreshInterval = "1s"
	suite.Create(t, es)
	suite.Start(t, "provider-vault", manifests.Rights, newOperator)
	synced := func(value string) {
		t.Helper()
		controlplane.Eventually(t, func() string {
			return cmp.Diff([]string{value, "True SecretSynced"}, []string{suite.Data(t, "outages", "db")["password"], suite.Ready(t, es)})
		})
	}
	synced("0")
	wantStore(t, s, "True Valid", "")

	cases := []struct {
		name, reason string
		// begin makes the server go; end brings it back.
		begin, end func()
		// says is what the store does while the server is away; nothing for one that does not go.
		says string
		// logins that follow.
		logins int
	}{
		{
			name: "Seal", reason: "A sealed server forgets no token.",
			begin: srv.Seal, says: "Vault is sealed, or not up yet", end: srv.Unseal,
		},
		{
			name: "Restart", reason: "Nor does one that ends, and comes back at the same address.",
			begin: srv.Stop, says: "Vault, or a proxy in front of it, cannot reach what it needs", end: srv.Restart,
		},
		{
			name: "RestartWithoutTokens", reason: "One that does costs one login.",
			begin: func() {
				reach := srv.Inject(every, vaulttest.Refuse(http.StatusBadGateway))
				if n := srv.RevokeTokens(); n != 1 {
					t.Errorf("%d tokens, want the one of the operator", n)
				}
				srv.Stop()
				reach()
			},
			says: "Vault, or a proxy in front of it, cannot reach what it needs", end: srv.Restart, logins: 1,
		},
		{
			name: "Revoked", reason: "So does a token that somebody revokes.",
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
		if tc.says != "" {
			wantStore(t, s, "False Unreachable", tc.says)
			controlplane.Eventually(t, func() string { return cmp.Diff("False StoreNotReady", suite.Ready(t, es)) })
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

// TestOneLogin asks for the refresh of fifty objects, ten times each. That costs a read for each, and
// one login in all.
func TestOneLogin(t *testing.T) {
	const objects, rounds = 50, 10
	srv := vaulttest.Start(t)
	suite.Namespace(t, "one-login", nil)
	suite.Create(t, shop(t, srv, srv.URL, "one-login", "prod"))
	all := make([]*common.ExternalSecret, objects)
	for i := range all {
		key := fmt.Sprint("db-", i)
		set(srv, key, "one")
		all[i] = operatortest.ExternalSecret("one-login", key, "VaultKV", "prod", key, "password")
		suite.Create(t, all[i])
	}
	suite.Start(t, "provider-vault", manifests.Rights, newOperator)
	for round := range rounds + 1 {
		request := strings.Repeat("x", round)
		if round > 0 {
			for _, es := range all {
				update(t, es, func() { es.Annotations = map[string]string{common.RefreshRequestAnnotation: request} })
			}
		}
		for _, es := range all {
			controlplane.Eventually(t, func() string {
				ready := suite.Ready(t, es)
				return cmp.Diff([]string{"True SecretSynced", request}, []string{ready, es.Status.ObservedRefreshRequest})
			})
		}
	}
	got := map[string]int{"logins": srv.Count(isAppRoleLogin), "reads": srv.Count(vaulttest.IsRead)}
	if diff := cmp.Diff(map[string]int{"logins": 1, "reads": objects * (rounds + 1)}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
