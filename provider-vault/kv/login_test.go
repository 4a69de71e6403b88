package kv

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// waitTimeout is how long a test waits for a condition.
const waitTimeout = 60 * time.Second

func eventually(t testing.TB, missing func() string) {
	t.Helper()
	deadline := time.After(waitTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for what := missing(); what != ""; what = missing() {
		select {
		case <-deadline:
			t.Fatalf("still not so: %s", what)
		case <-tick.C:
		}
	}
}

// reads makes n reads of shop/db, many of them concurrently.
func reads(t testing.TB, c *Client, n int) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(32)
	for range n {
		g.Go(func() error {
			_, err := c.Get(t.Context(), provider.Ref{Key: "shop/db"})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

func read1(t testing.TB, c *Client) string {
	v, err := c.Get(t.Context(), provider.Ref{Key: "shop/db"})
	if err != nil {
		return string(provider.ClassOf(err)) + ": " + provider.Safe(err).Error()
	}
	return string(v.Data)
}

const db = `{"password":"one"}`

func TestLogins(t *testing.T) {
	t.Parallel()
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(srv.URL), secrets)

	reads(t, c, 500)
	if got, want := [2]int{srv.Count(vaulttest.IsLogin), srv.Count(vaulttest.IsRead)}, [2]int{1, 500}; got != want {
		t.Errorf("500 reads must cost 1 login: %d logins, %d reads", got[0], got[1])
	}
	if n := len(srv.Calls()); n != 501 {
		t.Errorf("reads must need no other calls: %d calls", n)
	}

	if n := srv.RevokeTokens(); n != 1 {
		t.Fatalf("%d tokens were revoked, want 1", n)
	}
	srv.Reset()
	reads(t, c, 500)
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("a token that expires early must cost exactly 1 login: %d", n)
	}
}

func TestDeniedCostsNoLogin(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	srv.Policy("reader", `path "secret/data/shop/db" { capabilities = ["read"] }`)
	c := connect(t, appRole(srv.URL), secrets)
	for range 20 {
		reads(t, c, 1)
		if _, err := c.Get(t.Context(), provider.Ref{Key: "other"}); provider.ClassOf(err) != provider.Denied || !strings.Contains(err.Error(), `allow read on "secret/data/other"`) {
			t.Fatalf("error %v, want Denied with what to allow", err)
		}
	}
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("a missing permission must not cause a login: %d logins", n)
	}
	if n := srv.Count(vaulttest.On("auth/token/lookup-self")); n > 5 {
		t.Errorf("a missing permission must not cause a lookup each time: %d times", n)
	}
}

// Vault before 1.13, and OpenBao, answer a revoked token like a missing permission.
func TestExpiredTokenOfOlderServers(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(srv.URL), secrets)
	reads(t, c, 1)
	expired := srv.Calls()[len(srv.Calls())-1].Header.Get("X-Vault-Token")
	srv.RevokeTokens()
	srv.Reset()
	t.Cleanup(srv.Inject(func(call vaulttest.Call) bool { return call.Header.Get("X-Vault-Token") == expired }, vaulttest.Refuse(http.StatusForbidden)))
	reads(t, c, 100)
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("a token that expires early must cost exactly 1 login: %d", n)
	}
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	srv, secrets := vault(t, "6s")
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(srv.URL), secrets)
	reads(t, c, 1)
	renewals := vaulttest.On("auth/token/renew-self")
	eventually(t, func() string {
		if srv.Count(renewals) < 2 {
			return "two renewals, after the first lease has expired"
		}
		return ""
	})
	reads(t, c, 1)
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("a token that is renewed in time must not be replaced: %d logins", n)
	}
}

func TestMaximumTTL(t *testing.T) {
	t.Parallel()
	srv, secrets := vault(t, "1s")
	mustPut(t, srv, "shop/db", db)
	srv.Do(http.MethodPost, "auth/approle/role/shop", M{"token_max_ttl": "2s"})
	c := connect(t, appRole(srv.URL), secrets)
	eventually(t, func() string {
		if got := read1(t, c); got != db {
			t.Fatalf("reads must not fail when tokens expire: %s", got)
		}
		if srv.Count(vaulttest.IsLogin) < 3 {
			return "three logins, one after the other"
		}
		return ""
	})
	if n := srv.Count(vaulttest.On("auth/token/lookup-self")); n > 0 {
		t.Errorf("tokens must be replaced before they expire: %d lookups", n)
	}
}

func TestCloseRevokes(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	client, err := Connect(t.Context(), appRole(srv.URL), secrets)
	if err != nil {
		t.Fatal(err)
	}
	c := client.(*Client)
	reads(t, c, 1)
	if err := provider.Close(c); err != nil {
		t.Fatal(err)
	}
	if n := srv.RevokeTokens(); n != 0 {
		t.Errorf("a closed client must leave no token: %d", n)
	}
	if got := read1(t, c); !strings.HasPrefix(got, "Unavailable: ") {
		t.Errorf("a closed client must not log in again: %s", got)
	}
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

func TestTokenIsNotOurs(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	secrets["token"] = srv.Token(M{"policies": []string{"reader"}, "ttl": "1h"}) + "\n"
	r := ref("token")
	client, err := Connect(t.Context(), appRole(srv.URL, withAuth(v1alpha1.VaultAuth{TokenSecretRef: &r})), secrets)
	if err != nil {
		t.Fatal(err)
	}
	reads(t, client.(*Client), 10)
	if err := provider.Close(client); err != nil {
		t.Fatal(err)
	}
	if n := srv.RevokeTokens(); n != 1 {
		t.Errorf("the token of a Secret must not be revoked, because others use it, too: %d left", n)
	}
}

func TestSealAndRestart(t *testing.T) {
	srv, secrets := vault(t, "1h", vaulttest.Persistent())
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(srv.URL), secrets)
	reads(t, c, 1)

	srv.Seal()
	for _, err := range []error{c.Check(t.Context()), func() error { _, err := c.Get(t.Context(), provider.Ref{Key: "shop/db"}); return err }()} {
		if provider.ClassOf(err) != provider.Unavailable || !strings.Contains(err.Error(), "sealed") {
			t.Errorf("error %v, want Unavailable that says that Vault is sealed", err)
		}
	}
	if got := read1(t, connect(t, appRole(srv.URL), secrets)); !strings.HasPrefix(got, "Unavailable: spec.auth.appRole: logging in: ") {
		t.Errorf("a login without an answer must not be reported as wrong credentials: %s", got)
	}
	srv.Unseal()
	eventually(t, func() string { return cmp.Diff(db, read1(t, c)) })

	srv.Restart()
	eventually(t, func() string { return cmp.Diff(db, read1(t, c)) })
	srv.RevokeTokens()
	eventually(t, func() string { return cmp.Diff(db, read1(t, c)) })
}
