package kv

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// TestIdentity compares stores with one of the mount team/kv of a namespace. Nothing is asked of a server, since it may be
// anybody's.
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
		is, err := provider.Identify(t.Context(), c)
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
		"Login":     {"Who logs in does not matter.", func(s *spec) { s.Auth = &v1alpha1.VaultAuth{TokenSecretRef: new(ref("secret"))} }, true},
		"Settings":  {"Nor does how often a call is tried.", func(s *spec) { s.RetrySettings, s.ForwardInconsistent, s.ReadYourWrites = nil, true, true }, true},
		"Spelling":  {"One address has several spellings.", func(s *spec) { s.Server, s.Namespace, s.Path = "https://VAULT.example:443/", "/shop/", "/team/kv/" }, true},
		"Inside":    {"A namespace is the beginning of a path.", func(s *spec) { s.Namespace, s.Path = "shop/team", "kv" }, true},
		"Server":    {"Another server is another place.", func(s *spec) { s.Server = "https://vault.example.org" }, false},
		"Port":      {"So is another port.", func(s *spec) { s.Server = "https://vault.example:8200" }, false},
		"Namespace": {"So is another namespace.", func(s *spec) { s.Namespace = "" }, false},
		"Mount":     {"So is another mount.", func(s *spec) { s.Path = "team/kv2" }, false},
		"Headers":   {"A proxy may go by headers.", func(s *spec) { s.Headers = map[string]string{"X-Tenant": "other"} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := of(tc.change); (got == here) != tc.want {
				t.Errorf("%s\nalike: %t, want %t: -base, +got:\n%s", tc.reason, !tc.want, tc.want, cmp.Diff(here, got))
			}
		})
	}
}
