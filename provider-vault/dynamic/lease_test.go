package dynamic

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func TestLease(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	c, _ := connect(t, app(srv.URL), secrets)
	made, other := generate(t, c), generate(t, c)
	if !alive(srv, made) || !alive(srv, other) || len(srv.Leases("accounts/creds/app")) != 2 {
		t.Fatalf("accounts %v, leases %v", srv.Accounts("accounts"), srv.Leases("accounts/creds/app"))
	}
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}

	renewed, err := c.Renew(t.Context(), made.State)
	wants(t, "A lease can be renewed.", err, "")
	lives(t, "It has all of its time again.", renewed.Expires, 10*time.Minute)
	if !renewed.Expires.After(made.Expires) || renewed.State != made.State || renewed.Values != nil {
		t.Errorf("renewed %+v, made %+v", renewed, made.State)
	}

	for range 2 {
		wants(t, "What is revoked already is no error.", c.Cleanup(t.Context(), made.State), "")
		if alive(srv, made) || !alive(srv, other) {
			t.Errorf("Exactly one is revoked, and by the time that Cleanup returns: %v live", srv.Accounts("accounts"))
		}
	}
	_, err = c.Renew(t.Context(), made.State)
	wants(t, "What is revoked cannot be renewed.", err, "not renewable")
	wants(t, "There is nothing to revoke.", c.Cleanup(t.Context(), ""), "")
	wants(t, "It says what that means.", c.Cleanup(t.Context(), `{"lease":`), "Invalid: what is kept of the credentials has been damaged")
}

// A lease dies with the token that made it. So the end of a client, when its generator is changed or the operator
// ends, must not end that token; where nothing was made it does.
func TestClose(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	idle, stop := connect(t, app(srv.URL), secrets)
	wants(t, "", idle.Check(t.Context()), "")
	stop()
	if n := srv.RevokeTokens(); n != 0 {
		t.Errorf("A client that has made nothing leaves no token behind: %d", n)
	}

	c, stop := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	stop()
	if !alive(srv, made) {
		t.Fatal("The end of a client revokes what others use")
	}
	if _, err := c.Generate(t.Context()); provider.ClassOf(err) != provider.Unavailable {
		t.Errorf("A closed client makes nothing: %v", err)
	}

	next, stop := connect(t, app(srv.URL), secrets)
	wants(t, "Another client revokes it.", next.Cleanup(t.Context(), made.State), "")
	if alive(srv, made) {
		t.Error("It is not revoked")
	}
	stop()
	if n := srv.RevokeTokens(); n != 1 {
		t.Errorf("That client has made nothing itself, so only the first one's token is left: %d", n)
	}
}

// The session of after a restart is not the one that made the credentials. Nobody renews that one's token.
func TestRestart(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy string
		life   string // of tokens
		opts   func(srv *vaulttest.Server) []func(*spec)
		change func(srv *vaulttest.Server, creator string)
		want   string
		lives  time.Duration
	}{
		"Allowed": {reason: "The policy allows to renew the token that made it.", policy: byAccessor, life: "1h", lives: 10 * time.Minute},
		"Short":   {reason: "The token ends before the lease.", policy: byAccessor, life: "5m", lives: 5 * time.Minute},
		"Refused": {reason: "The token would end in spite of the renewal of the lease.", life: "1h", want: "not renewable"},
		"Revoked": {
			reason: "The token is gone, and the lease with it.", policy: byAccessor, life: "1h", want: "not renewable",
			change: func(srv *vaulttest.Server, creator string) {
				srv.Do(http.MethodPost, "auth/token/revoke-accessor", M{"accessor": creator})
			},
		},
		"Root": {
			reason: "The token of a Secret is still the same.", life: "1h", lives: 10 * time.Minute,
			opts: func(*vaulttest.Server) []func(*spec) { return []func(*spec){byToken("root")} },
		},
		"Own": {
			reason: "So is one that ends some day.", life: "1h", lives: 10 * time.Minute,
			opts: func(*vaulttest.Server) []func(*spec) { return []func(*spec){byToken("own")} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv, secrets := vault(t, M{"token_ttl": tc.life})
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
				lives(t, tc.reason, renewed.Expires, tc.lives)
			}
			wants(t, "It can be revoked anyway.", next.Cleanup(t.Context(), made.State), "")
			if alive(srv, made) {
				t.Error("It is not revoked")
			}
		})
	}
}

// The token that made a lease lives on, beyond its first time, for as long as its session renews it.
func TestTokenIsRenewed(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "4s"})
	c, _ := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	controlplane.Eventually(t, func() string {
		if !alive(srv, made) {
			t.Fatal("The account has died with its token")
		}
		if time.Until(made.Expires) > -2*time.Second {
			return "a time well after the first end of the token"
		}
		return ""
	})
	renewed, err := c.Renew(t.Context(), made.State)
	wants(t, "The session is still the one that made it.", err, "")
	if left := time.Until(renewed.Expires); left < time.Second || left > 4*time.Second {
		t.Errorf("It lives for %s, want up to 4s: that is when the token ends", left)
	}
	if n := srv.Count(vaulttest.IsLogin); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

// A token comes to its maximum. What it made is replaced in time, by a token that has all of its time.
func TestMaximumOfToken(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "8s", "token_max_ttl": "8s"})
	c, _ := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	lives(t, "The token ends first.", made.Expires, 8*time.Second)
	controlplane.Eventually(t, func() string {
		renewed, err := c.Renew(t.Context(), made.State)
		if err == nil {
			if renewed.Expires.After(made.Expires.Add(time.Second)) {
				t.Fatalf("It is said to live until %s, but its token until %s", renewed.Expires, made.Expires)
			}
			return "a renewal that does not give much any more"
		}
		if !errors.Is(err, provider.ErrNotRenewable) {
			t.Fatal(err)
		}
		return ""
	})
	if !alive(srv, made) {
		t.Error("That is found out too late: it has died")
	}
	replaced := generate(t, c)
	lives(t, "The new one comes of a new token.", replaced.Expires, 8*time.Second)
	if n := srv.Count(vaulttest.IsLogin); n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
	controlplane.Eventually(t, func() string {
		if alive(srv, made) {
			return "the end of the first one with its token, though its lease was renewed"
		}
		return ""
	})
	wants(t, "What has expired is no error.", c.Cleanup(t.Context(), made.State), "")
}

func TestNotRenewable(t *testing.T) {
	cases := map[string]struct {
		reason string
		role   M // of accounts
		tokens M // of the AppRole
		token  M // instead of the AppRole's
		want   string
	}{
		"Renewable": {"It has time left.", M{"ttl": 600, "max_ttl": 1200}, nil, nil, ""},
		"Fixed":     {"The engine does not renew it.", M{"ttl": 600, "fixed": true}, nil, nil, "not renewable"},
		"Leaseless": {"There is no lease.", M{"leaseless": true}, nil, nil, "not renewable"},
		"Policy":    {"Leases cannot be renewed, so it is replaced in time.", M{"ttl": 600}, M{"token_no_default_policy": true}, nil, "not renewable"},
		"Batch":     {"Nobody can tell that the session is still the same.", M{"ttl": 600}, nil, M{"type": "batch", "ttl": "1h", "policies": []string{"maker"}}, "not renewable"},
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

// A lease comes to its maximum.
func TestMaximumOfLease(t *testing.T) {
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
			return "a renewal that grants less than half of the first time"
		}
		if !errors.Is(err, provider.ErrNotRenewable) {
			t.Fatal(err)
		}
		return ""
	})
	if renewals == 0 || !alive(srv, made) {
		t.Errorf("%d renewals, and it lives: %t", renewals, alive(srv, made))
	}
	controlplane.Eventually(t, func() string {
		if alive(srv, made) {
			return "the end of the account"
		}
		return ""
	})
	wants(t, "What has expired is no error.", c.Cleanup(t.Context(), made.State), "")
	_, err := c.Renew(t.Context(), made.State)
	wants(t, "But nothing to renew.", err, "not renewable")
}

func TestCleanupRefused(t *testing.T) {
	const without = `path "accounts/creds/*" { capabilities = ["read"] }
path "auth/token/create/*" { capabilities = ["update"] }`
	cases := map[string]struct {
		reason string
		policy string
		role   M
		token  bool
		want   string
	}{
		"Lease": {"It says what to allow.", without, M{"ttl": 600}, false, `Denied: revoking: access denied; allow update on "sys/leases/revoke" in a policy`},
		"Token": {"It says what to allow.", without, nil, true, `Denied: revoking: access denied; allow update on "auth/token/revoke-accessor" in a policy`},
		"Stuck": {"What Vault cannot revoke now is tried again.", makes, M{"ttl": 600, "stuck": true}, false, "Unavailable: revoking: Vault cannot do it now"},
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
			if !alive(srv, made) {
				t.Error("It was not revoked")
			}
			srv.Policy("maker", makes)
			srv.AccountRole("accounts", "app", M{"ttl": 600})
			wants(t, "Once mended it works.", c.Cleanup(t.Context(), made.State), "")
			if alive(srv, made) {
				t.Error("It is not revoked")
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
	if !srv.Lives(accessor) {
		t.Fatal("The token does not live")
	}
	_, err := c.Renew(t.Context(), made.State)
	wants(t, "Tokens are renewed by their accessor, where the policy allows it.", err, "not renewable")
	srv.Policy("maker", makes+byAccessor)
	renewed, err := c.Renew(t.Context(), made.State)
	wants(t, "Now it does.", err, "")
	lives(t, "It has all of its time again.", renewed.Expires, 5*time.Minute)
	for range 2 {
		wants(t, "What is revoked already is no error.", c.Cleanup(t.Context(), made.State), "")
		if srv.Lives(accessor) {
			t.Error("The token is not revoked")
		}
	}
	_, err = c.Renew(t.Context(), made.State)
	wants(t, "What is revoked cannot be renewed.", err, "not renewable")
}

// Whatever fails on the way is tried again: nothing is replaced or forgotten because Vault was away.
func TestUnavailable(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	srv.Policy("maker", makes+byAccessor)
	c, stop := connect(t, app(srv.URL), secrets)
	made := generate(t, c)
	stop()
	next, _ := connect(t, app(srv.URL), secrets)
	foreign := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<html>c4n4ry</html>")) // The client reads it.
	}
	for name, tc := range map[string]struct {
		on     string
		answer http.HandlerFunc
		want   string
	}{
		"Lease":     {"sys/leases/renew", vaulttest.Refuse(500), "Unavailable: renewing: "},
		"Throttled": {"sys/leases/renew", vaulttest.Refuse(429), "Throttled: renewing: "},
		"Creator":   {"auth/token/renew-accessor", vaulttest.Refuse(503), "Unavailable: renewing: "},
		"Proxy":     {"sys/leases/renew", foreign, "Unavailable: renewing: spec.server: what answers, with status 403, is not Vault"},
		"Revoke":    {"sys/leases/revoke", vaulttest.Refuse(500), "Unavailable: revoking: "},
		"RevokeOff": {"sys/leases/revoke", foreign, "Unavailable: revoking: spec.server: what answers, with status 403, is not Vault"},
	} {
		t.Run(name, func(t *testing.T) {
			defer srv.Inject(vaulttest.On(tc.on), tc.answer)()
			var err error
			if tc.on == "sys/leases/revoke" {
				err = next.Cleanup(t.Context(), made.State)
			} else {
				_, err = next.Renew(t.Context(), made.State)
			}
			wants(t, "It proves nothing.", err, tc.want)
		})
	}
	if !alive(srv, made) {
		t.Error("It lives all the time")
	}
}

// What other versions of Vault answer where 1.21 says that all is well: that there is nothing to revoke.
func TestOtherAnswers(t *testing.T) {
	srv, secrets := vault(t, nil)
	c, _ := connect(t, app(srv.URL), secrets)
	for name, tc := range map[string]struct{ on, text, state string }{
		"Lease":    {"sys/leases/revoke", "lease not found", `{"lease":"accounts/creds/app/x"}`},
		"Accessor": {"auth/token/revoke-accessor", "1 error occurred: * invalid accessor", `{"token":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			defer srv.Inject(vaulttest.On(tc.on), vaulttest.RefuseWith(http.StatusBadRequest, tc.text))()
			wants(t, "It is gone.", c.Cleanup(t.Context(), tc.state), "")
			if n := srv.Count(vaulttest.On(tc.on)); n != 1 {
				t.Errorf("%d calls, want 1", n)
			}
		})
	}
}

// A renewal renews the token of the session, too, where that ends before the lease.
func TestTokenThatEndsFirst(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	srv.AccountRole("accounts", "long", M{"ttl": 36000, "max_ttl": 72000})
	for name, tc := range map[string]struct {
		role  string
		calls int
		lives time.Duration
	}{
		"TokenFirst": {"long", 1, time.Hour},
		"LeaseFirst": {"app", 0, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, app(srv.URL, path("accounts/creds/"+tc.role)), secrets)
			made := generate(t, c)
			srv.Reset()
			renewed, err := c.Renew(t.Context(), made.State)
			wants(t, "It can be renewed.", err, "")
			lives(t, "It ends with what ends first.", renewed.Expires, tc.lives)
			if n := srv.Count(vaulttest.On("auth/token/renew-self")); n != tc.calls || !renewed.Expires.After(made.Expires) {
				t.Errorf("%d renewals of the token, want %d; it ends at %s, and before that at %s", n, tc.calls, renewed.Expires, made.Expires)
			}
		})
	}
}
