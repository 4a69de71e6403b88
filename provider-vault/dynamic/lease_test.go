package dynamic

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func TestLease(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	c, _ := connect(t, app(srv.URL), secrets)
	made, other := generate(t, c), generate(t, c)
	if !accountExists(srv, made) || !accountExists(srv, other) || len(srv.Leases("accounts/creds/app")) != 2 {
		t.Fatalf("accounts %v, leases %v", srv.Accounts("accounts"), srv.Leases("accounts/creds/app"))
	}
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}

	renewed, err := c.Renew(t.Context(), made.State)
	wants(t, "A lease can be renewed.", err, "")
	wantExpiry(t, "The renewed lease has its full time.", renewed.Expires, 10*time.Minute)
	if !renewed.Expires.After(made.Expires) || renewed.State != made.State || renewed.Values != nil {
		t.Errorf("renewed %+v, made %+v", renewed, made.State)
	}

	for range 2 {
		wants(t, "Revoking a revoked lease is not an error.", c.Cleanup(t.Context(), made.State), "")
		if accountExists(srv, made) || !accountExists(srv, other) {
			t.Errorf("exactly one account must be revoked when Cleanup returns: %v live", srv.Accounts("accounts"))
		}
	}
	_, err = c.Renew(t.Context(), made.State)
	wants(t, "A revoked lease cannot be renewed.", err, "not renewable")
	wants(t, "A state without a lease needs no cleanup.", c.Cleanup(t.Context(), ""), "")
	wants(t, "The error of a damaged state explains the cause.", c.Cleanup(t.Context(), `{"lease":`), "Invalid: the stored record of the credentials is damaged")
}

// TestOwnLogin checks that the token of the generator's own login is neither given out nor revoked: what was created
// with it would be revoked with it.
func TestOwnLogin(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	c, _ := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	by, err := parse(made.State)
	if err != nil || by.Creator == "" {
		t.Fatalf("the state names no creator: %v", err)
	}
	wants(t, "The own token is not revoked.", c.Cleanup(t.Context(), state{Token: by.Creator}.String()), "Invalid: revoking: the record names the token of the generator's own login")
	if !srv.IsTokenValid(by.Creator) || !accountExists(srv, made) {
		t.Error("the token of the login was revoked")
	}

	self, _ := connect(t, app(srv.URL, path("auth/token/renew-self"), func(s *spec) {
		s.Method, s.ResultType = v1alpha1.MethodPost, v1alpha1.ResultAuth
	}), secrets)
	_, err = self.Generate(t.Context())
	wants(t, "The own token is not given out.", err, "Invalid: spec.path: the response is the token of the generator's own login")
}

// Vault revokes a lease together with the token that created it. Closing a client, when its generator changes
// or the operator stops, must therefore not revoke that token. If no credentials were created, it must.
func TestClose(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	idle, stop := connect(t, app(srv.URL), secrets)
	wants(t, "", idle.Check(t.Context()), "")
	stop()
	if n := srv.RevokeTokens(); n != 0 {
		t.Errorf("a client that has created nothing must leave no token: %d", n)
	}

	c, stop := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	stop()
	if !accountExists(srv, made) {
		t.Fatal("closing a client must not revoke credentials that are in use")
	}
	if _, err := c.Generate(t.Context()); provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("a closed client must create nothing: %v", err)
	}

	next, stop := connect(t, app(srv.URL), secrets)
	wants(t, "Another client can revoke the credentials.", next.Cleanup(t.Context(), made.State), "")
	if accountExists(srv, made) {
		t.Error("the credentials are not revoked")
	}
	stop()
	if n := srv.RevokeTokens(); n != 1 {
		t.Errorf("only the first client's token must be left, because the other client has created nothing: %d", n)
	}
}

// After a restart the session is not the one that created the credentials, so its token is not renewed
// automatically.
func TestRestart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		policy     string
		lifetime   string // of the tokens
		opts       func(srv *vaulttest.Server) []func(*spec)
		change     func(srv *vaulttest.Server, creator string)
		want       string
		wantExpiry time.Duration
	}{
		"Allowed": {reason: "The policy allows renewing the token that created the lease.", policy: byAccessor, lifetime: "1h", wantExpiry: 10 * time.Minute},
		"Short":   {reason: "The token expires before the lease, and limits it.", policy: byAccessor, lifetime: "5m", wantExpiry: 5 * time.Minute},
		"Refused": {reason: "The lease counts as not renewable, because its token would expire anyway.", lifetime: "1h", want: "not renewable"},
		"Revoked": {
			reason: "The token was revoked, and the lease with it.", policy: byAccessor, lifetime: "1h", want: "not renewable",
			change: func(srv *vaulttest.Server, creator string) {
				srv.Do(http.MethodPost, "auth/token/revoke-accessor", M{"accessor": creator})
			},
		},
		"Root": {
			reason: "A root token in a Secret is still valid.", lifetime: "1h", wantExpiry: 10 * time.Minute,
			opts: func(*vaulttest.Server) []func(*spec) { return []func(*spec){byToken("root")} },
		},
		"Own": {
			reason: "A token in a Secret that expires later is still valid.", lifetime: "1h", wantExpiry: 10 * time.Minute,
			opts: func(*vaulttest.Server) []func(*spec) { return []func(*spec){byToken("own")} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, secrets := vault(t, M{"token_ttl": tc.lifetime})
			srv.Policy("maker", makes+tc.policy)
			secrets["own"] = srv.Token(M{"policies": []string{"maker", "default"}, "ttl": "2h"})
			var opts []func(*spec)
			if tc.opts != nil {
				opts = tc.opts(srv)
			}
			c, stop := connect(t, app(srv.URL, opts...), secrets)
			made := generate(t, c)
			stop()
			if tc.change != nil {
				s, err := parse(made.State)
				if err != nil {
					t.Fatal(err)
				}
				tc.change(srv, s.Creator)
			}
			next, _ := connect(t, app(srv.URL, opts...), secrets)
			renewed, err := next.Renew(t.Context(), made.State)
			wants(t, tc.reason, err, tc.want)
			if err == nil {
				wantExpiry(t, tc.reason, renewed.Expires, tc.wantExpiry)
			}
			wants(t, "The lease can be revoked in any case.", next.Cleanup(t.Context(), made.State), "")
			if accountExists(srv, made) {
				t.Error("the lease is not revoked")
			}
		})
	}
}

// The session renews the token that created a lease beyond its first expiry.
func TestTokenIsRenewed(t *testing.T) {
	t.Parallel()
	srv, secrets := vault(t, M{"token_ttl": "4s"})
	c, _ := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	controlplane.Eventually(t, func() string {
		if !accountExists(srv, made) {
			t.Fatal("the account was revoked with its token")
		}
		if time.Until(made.Expires) > -2*time.Second {
			return "a time well after the first expiry of the token"
		}
		return ""
	})
	renewed, err := c.Renew(t.Context(), made.State)
	wants(t, "The session is still the one that created the lease.", err, "")
	if left := time.Until(renewed.Expires); left < time.Second || left > 4*time.Second {
		t.Errorf("the lease lasts %s, want up to 4s, when the token expires", left)
	}
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

// When a token reaches its maximum, its credentials are replaced in time, with a new token that has its full
// time.
func TestMaximumOfToken(t *testing.T) {
	t.Parallel()
	srv, secrets := vault(t, M{"token_ttl": "8s", "token_max_ttl": "8s"})
	c, _ := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	wantExpiry(t, "The token expires first.", made.Expires, 8*time.Second)
	controlplane.Eventually(t, func() string {
		renewed, err := c.Renew(t.Context(), made.State)
		if err == nil {
			if renewed.Expires.After(made.Expires.Add(time.Second)) {
				t.Fatalf("the lease expires at %s, but its token at %s", renewed.Expires, made.Expires)
			}
			return "a renewal that adds little time"
		}
		if !errors.Is(err, provider.ErrNotRenewable) {
			t.Fatal(err)
		}
		return ""
	})
	if !accountExists(srv, made) {
		t.Error("the end is found too late: the account was revoked")
	}
	replaced := generate(t, c)
	wantExpiry(t, "The new account is created with a new token.", replaced.Expires, 8*time.Second)
	if n := srv.Count(vaulttest.IsLogin); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
	controlplane.Eventually(t, func() string {
		if accountExists(srv, made) {
			return "the end of the first account with its token, although its lease was renewed"
		}
		return ""
	})
	wants(t, "Revoking an expired lease is not an error.", c.Cleanup(t.Context(), made.State), "")
}

func TestNotRenewable(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		role   M // of accounts
		tokens M // of the AppRole's tokens
		token  M // the token to use instead of the AppRole's
		want   string
	}{
		"Renewable": {"A lease with time left is renewed.", M{"ttl": 600, "max_ttl": 1200}, nil, nil, ""},
		"Fixed":     {"A lease that the engine does not renew is not renewable.", M{"ttl": 600, "fixed": true}, nil, nil, "not renewable"},
		"Leaseless": {"Values without a lease are not renewable.", M{"leaseless": true}, nil, nil, "not renewable"},
		"Policy":    {"A lease is not renewable without the permission to renew leases.", M{"ttl": 600}, M{"token_no_default_policy": true}, nil, "not renewable"},
		"Batch":     {"A lease of a batch token has no accessor that identifies its session.", M{"ttl": 600}, nil, M{"type": "batch", "ttl": "1h", "policies": []string{"maker"}}, "not renewable"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, secrets := vault(t, tc.tokens)
			srv.AccountRole("accounts", "app", tc.role)
			var opts []func(*spec)
			if tc.token != nil {
				secrets["token"] = srv.Token(tc.token)
				opts = append(opts, byToken("token"))
			}
			c, _ := connect(t, app(srv.URL, opts...), secrets)
			_, err := c.Renew(t.Context(), generate(t, c).State)
			wants(t, tc.reason, err, tc.want)
		})
	}
}

// The lease reaches its maximum.
func TestMaximumOfLease(t *testing.T) {
	t.Parallel()
	srv, secrets := vault(t, nil)
	srv.AccountRole("accounts", "app", M{"ttl": 6, "max_ttl": 9})
	c, _ := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	renewals := 0
	controlplane.Eventually(t, func() string {
		at := time.Now()
		renewed, err := c.Renew(t.Context(), made.State)
		if err == nil {
			if left := renewed.Expires.Sub(at); left < 3*time.Second {
				t.Fatalf("%s is less than half of the first time", left)
			}
			renewals++
			return "a renewal that adds less than half of the first time"
		}
		if !errors.Is(err, provider.ErrNotRenewable) {
			t.Fatal(err)
		}
		return ""
	})
	if renewals == 0 || !accountExists(srv, made) {
		t.Errorf("%d renewals, and it lives: %t", renewals, accountExists(srv, made))
	}
	controlplane.Eventually(t, func() string {
		if accountExists(srv, made) {
			return "the expiry of the account"
		}
		return ""
	})
	wants(t, "Revoking an expired lease is not an error.", c.Cleanup(t.Context(), made.State), "")
	_, err := c.Renew(t.Context(), made.State)
	wants(t, "An expired lease cannot be renewed.", err, "not renewable")
}

func TestCleanupRefused(t *testing.T) {
	t.Parallel()
	const without = `path "accounts/creds/*" { capabilities = ["read"] }
path "auth/token/create/*" { capabilities = ["update"] }`
	cases := map[string]struct {
		reason string
		policy string
		role   M
		token  bool
		want   string
	}{
		"Lease": {"The error names the path to allow for a lease.", without, M{"ttl": 600}, false, `Denied: revoking: access denied; allow update on "sys/leases/revoke" in a policy`},
		"Token": {"The error names the path to allow for a token.", without, nil, true, `Denied: revoking: access denied; allow update on "auth/token/revoke-accessor" in a policy`},
		"Stuck": {"A lease that Vault cannot revoke now is Unavailable.", makes, M{"ttl": 600, "stuck": true}, false, "Unavailable: revoking: Vault cannot do it now"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, secrets := vault(t, nil)
			srv.Policy("maker", tc.policy)
			var opts []func(*spec)
			if tc.token {
				opts = append(opts, tokens(t, srv, M{"orphan": true}))
			} else {
				srv.AccountRole("accounts", "app", tc.role)
			}
			c, _ := connect(t, app(srv.URL, opts...), secrets)
			made := generate(t, c)
			wants(t, tc.reason, c.Cleanup(t.Context(), made.State), tc.want)
			if tc.token {
				return
			}
			if !accountExists(srv, made) {
				t.Error("the credentials were revoked despite the error")
			}
			srv.Policy("maker", makes)
			srv.AccountRole("accounts", "app", M{"ttl": 600})
			wants(t, "The revocation works after the fix.", c.Cleanup(t.Context(), made.State), "")
			if accountExists(srv, made) {
				t.Error("the credentials are not revoked")
			}
		})
	}
}

func TestToken(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	asked := tokens(t, srv, M{"orphan": true})
	c, _ := connect(t, app(srv.URL, asked), secrets)
	made := generate(t, c)
	accessor := string(made.Values["accessor"])
	if !srv.IsTokenValid(accessor) {
		t.Fatal("the token is not valid")
	}
	_, err := c.Renew(t.Context(), made.State)
	wants(t, "Tokens are renewed by their accessor if the policy allows it.", err, "not renewable")
	srv.Policy("maker", makes+byAccessor)
	renewed, err := c.Renew(t.Context(), made.State)
	wants(t, "The policy allows it now.", err, "")
	wantExpiry(t, "The renewed token has its full time.", renewed.Expires, 5*time.Minute)
	for range 2 {
		wants(t, "Revoking a revoked token is not an error.", c.Cleanup(t.Context(), made.State), "")
		if srv.IsTokenValid(accessor) {
			t.Error("The token is not revoked")
		}
	}
	_, err = c.Renew(t.Context(), made.State)
	wants(t, "A revoked token cannot be renewed.", err, "not renewable")
}

// Every failure on the way to Vault is temporary: nothing is replaced or forgotten because Vault is
// unavailable.
func TestUnavailable(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	srv.Policy("maker", makes+byAccessor)
	c, stop := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	stop()
	next, _ := connect(t, app(srv.URL), secrets)
	foreign := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<html>c4n4ry</html>")) // The client checks the answer.
	}
	for name, tc := range map[string]struct {
		on     string
		answer http.HandlerFunc
		want   string
	}{
		"Lease":     {"sys/leases/renew", vaulttest.Refuse(500), "Unavailable: renewing: "},
		"Throttled": {"sys/leases/renew", vaulttest.Refuse(429), "Throttled: renewing: "},
		"Creator":   {"auth/token/renew-accessor", vaulttest.Refuse(503), "Unavailable: renewing: "},
		"Proxy":     {"sys/leases/renew", foreign, "Unavailable: renewing: spec.server: the response with status 403 is not from Vault"},
		"Revoke":    {"sys/leases/revoke", vaulttest.Refuse(500), "Unavailable: revoking: "},
		"RevokeOff": {"sys/leases/revoke", foreign, "Unavailable: revoking: spec.server: the response with status 403 is not from Vault"},
	} {
		t.Run(name, func(t *testing.T) {
			defer srv.Inject(vaulttest.On(tc.on), tc.answer)()
			var err error
			if tc.on == "sys/leases/revoke" {
				err = next.Cleanup(t.Context(), made.State)
			} else {
				_, err = next.Renew(t.Context(), made.State)
			}
			wants(t, "The answer of another server is no proof of an end.", err, tc.want)
		})
	}
	if !accountExists(srv, made) {
		t.Error("the account must stay valid")
	}
}

// Other versions of Vault return an error if there is nothing to revoke, where 1.21 returns success.
func TestOtherAnswers(t *testing.T) {
	srv, secrets := vault(t, nil)
	c, _ := connect(t, app(srv.URL), secrets)
	for name, tc := range map[string]struct{ on, text, state string }{
		"Lease":    {"sys/leases/revoke", "lease not found", `{"lease":"accounts/creds/app/x"}`},
		"Accessor": {"auth/token/revoke-accessor", "1 error occurred: * invalid accessor", `{"token":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			defer srv.Inject(vaulttest.On(tc.on), vaulttest.RefuseWith(http.StatusBadRequest, tc.text))()
			wants(t, "Nothing is left to revoke.", c.Cleanup(t.Context(), tc.state), "")
			if n := srv.Count(vaulttest.On(tc.on)); n != 1 {
				t.Errorf("%d calls, want 1", n)
			}
		})
	}
}

// A renewal also renews the token of the session, if it expires before the lease.
func TestTokenThatEndsFirst(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	srv.AccountRole("accounts", "long", M{"ttl": 36000, "max_ttl": 72000})
	for name, tc := range map[string]struct {
		role       string
		calls      int
		wantExpiry time.Duration
	}{
		"TokenFirst": {"long", 1, time.Hour},
		"LeaseFirst": {"app", 0, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, app(srv.URL, path("accounts/creds/"+tc.role)), secrets)
			made := generate(t, c)
			srv.Reset()
			renewed, err := c.Renew(t.Context(), made.State)
			wants(t, "The lease can be renewed.", err, "")
			wantExpiry(t, "The lease ends with the first expiry.", renewed.Expires, tc.wantExpiry)
			if n := srv.Count(vaulttest.On("auth/token/renew-self")); n != tc.calls || !renewed.Expires.After(made.Expires) {
				t.Errorf("%d renewals of the token, want %d; it expires at %s, before at %s", n, tc.calls, renewed.Expires, made.Expires)
			}
		})
	}
}
