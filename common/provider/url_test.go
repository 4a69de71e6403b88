package provider_test

import (
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// plain is a Credentials that reads nothing.
type plain struct {
	provider.Credentials
	allowed bool
}

func (p plain) PlainHTTPAllowed() bool { return p.allowed }

func TestParseURL(t *testing.T) {
	cases := map[string]struct {
		reason  string
		raw     string
		allowed bool
		// want begins the error; empty if there is none.
		want string
	}{
		"HTTPS":         {"TLS is always allowed.", "https://vault.example.com:8200", false, ""},
		"Path":          {"A path is part of an address.", "https://example.com/vault", false, ""},
		"Loopback":      {"Nobody listens on the own host.", "http://127.0.0.1:8200", false, ""},
		"Loopback6":     {"Whichever its address.", "http://[::1]:8200", false, ""},
		"Localhost":     {"Or name.", "http://LocalHost:8200", false, ""},
		"Plain":         {"Elsewhere everybody may.", "http://vault.example.com", false, "spec.server: plain http"},
		"PlainAllowed":  {"Unless the operator was told that it does not matter.", "http://vault.example.com", true, ""},
		"LikeLocalhost": {"A name that begins so is another host.", "http://localhost.example.com", false, "spec.server: plain http"},
		"LikeLoopback":  {"So is one that looks like an address.", "http://127.0.0.1.example.com", false, "spec.server: plain http"},
		"Private":       {"A private network is not the own host.", "http://10.0.0.1", false, "spec.server: plain http"},
		"NoScheme":      {"An address needs its scheme.", "vault.example.com:8200", false, "spec.server: is not a URL"},
		"OtherScheme":   {"And one that is served.", "ftp://vault.example.com", true, "spec.server: must begin with https://"},
		"NoHost":        {"And a host.", "https://", false, "spec.server: is not a URL"},
		"User":          {"A password does not belong into a spec.", "https://u:s3cret@example.com", false, "spec.server: must have no user"},
		"Query":         {"A query is no part of an address.", "https://example.com?a=b", false, "spec.server: must have no user"},
		"EmptyQuery":    {"Not even an empty one.", "https://example.com?", false, "spec.server: must have no user"},
		"Fragment":      {"Nor is a fragment.", "https://example.com#a", false, "spec.server: must have no user"},
		"Control":       {"What cannot be read is not shown.", "https://example.com/s3cret\x00", false, "spec.server: is not a URL"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u, err := provider.ParseURL(plain{allowed: tc.allowed}, "spec.server", tc.raw)
			switch {
			case (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want):
				t.Errorf("\n%s\nParseURL(%q): %v, want %q", tc.reason, tc.raw, err, tc.want)
			case err == nil && u.String() != tc.raw:
				t.Errorf("\n%s\nParseURL(%q): %s", tc.reason, tc.raw, u)
			case err != nil && (provider.ClassOf(err) != provider.Invalid || strings.Contains(err.Error(), "s3cret")):
				t.Errorf("\n%s\nParseURL(%q): class %s, %v", tc.reason, tc.raw, provider.ClassOf(err), err)
			}
		})
	}
}
