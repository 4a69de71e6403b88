package kv

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// TestIdentity compares stores with one of the mount team/kv in a namespace. No server is called, because any
// server can run at an address.
func TestIdentity(t *testing.T) {
	type spec = v1alpha1.VaultKVSpec
	of := func(change func(*spec)) provider.Identity {
		t.Helper()
		s := appRole("https://vault.example", func(s *spec) { s.Namespace, s.Path = "shop", "team/kv" })
		if change != nil {
			change(&s.Spec)
		}
		c, err := Connect(t.Context(), s, creds{"role": "r", "secret": "s"})
		if err != nil {
			t.Fatal(err)
		}
		is, err := fake.Link("VaultKV", c).Identify(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	here := of(nil)
	cases := map[string]struct {
		reason string
		change func(*spec)
		want   bool
	}{
		"Login":     {"Another login has the same identity.", func(s *spec) { s.Auth = &v1alpha1.VaultAuth{TokenSecretRef: new(ref("secret"))} }, true},
		"Settings":  {"Other settings of requests have the same identity.", func(s *spec) { s.RetrySettings, s.ForwardInconsistent, s.ReadYourWrites = nil, true, true }, true},
		"Spelling":  {"Another spelling of the address has the same identity.", func(s *spec) { s.Server, s.Namespace, s.Path = "https://VAULT.example:443/", "/shop/", "/team/kv/" }, true},
		"Inside":    {"A namespace can also be given as the start of the path.", func(s *spec) { s.Namespace, s.Path = "shop/team", "kv" }, true},
		"Server":    {"Another server has another identity.", func(s *spec) { s.Server = "https://vault.example.org" }, false},
		"Port":      {"Another port has another identity.", func(s *spec) { s.Server = "https://vault.example:8200" }, false},
		"Namespace": {"Another namespace has another identity.", func(s *spec) { s.Namespace = "" }, false},
		"Mount":     {"Another mount has another identity.", func(s *spec) { s.Path = "team/kv2" }, false},
		"Headers":   {"Other headers have another identity, because a proxy can route by them.", func(s *spec) { s.Headers = map[string]string{"X-Tenant": "other"} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := of(tc.change); (got == here) != tc.want {
				t.Errorf("%s\nalike: %t, want %t: -base, +got:\n%s", tc.reason, !tc.want, tc.want, cmp.Diff(here, got))
			}
		})
	}
}
