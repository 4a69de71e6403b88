package provider_test

import (
	"strings"
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// plain is a Credentials that cannot read anything.
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
		// want is the start of the error; empty if there is none.
		want string
	}{
		"HTTPS":         {"TLS is always allowed.", "https://vault.example.com:8200", false, ""},
		"Path":          {"An address can have a path.", "https://example.com/vault", false, ""},
		"Loopback":      {"Plain http to the own host is allowed.", "http://127.0.0.1:8200", false, ""},
		"Loopback6":     {"Plain http to the own host over IPv6 is allowed.", "http://[::1]:8200", false, ""},
		"Localhost":     {"Plain http to localhost is allowed.", "http://LocalHost:8200", false, ""},
		"Plain":         {"Plain http to another host is refused.", "http://vault.example.com", false, "spec.server: plain http"},
		"PlainAllowed":  {"Plain http to another host can be allowed by a flag.", "http://vault.example.com", true, ""},
		"LikeLocalhost": {"A name that starts with localhost is another host.", "http://localhost.example.com", false, "spec.server: plain http"},
		"LikeLoopback":  {"A name that starts like a loopback address is another host.", "http://127.0.0.1.example.com", false, "spec.server: plain http"},
		"Private":       {"A private network is not the own host.", "http://10.0.0.1", false, "spec.server: plain http"},
		"NoScheme":      {"An address needs a scheme.", "vault.example.com:8200", false, "spec.server: is not a URL"},
		"OtherScheme":   {"Another scheme is refused.", "ftp://vault.example.com", true, "spec.server: must begin with https://"},
		"NoHost":        {"An address needs a host.", "https://", false, "spec.server: is not a URL"},
		"User":          {"A password in the address is refused.", "https://u:s3cret@example.com", false, "spec.server: must have no user"},
		"Query":         {"A query in the address is refused.", "https://example.com?a=b", false, "spec.server: must have no user"},
		"EmptyQuery":    {"An empty query in the address is refused.", "https://example.com?", false, "spec.server: must have no user"},
		"Fragment":      {"A fragment in the address is refused.", "https://example.com#a", false, "spec.server: must have no user"},
		"Control":       {"An address that cannot be parsed is not shown.", "https://example.com/s3cret\x00", false, "spec.server: is not a URL"},
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

func TestParseServer(t *testing.T) {
	const refused = "spec.server: plain http is for the operator's own host (127.0.0.1, localhost) only; use https, or set spec.allowPlainHTTP if the network protects the traffic"
	cases := map[string]struct {
		reason            string
		raw               string
		allowed, operator bool
		plain             bool
		want              string
	}{
		"HTTPS":    {"TLS is not plain.", "https://example.com", false, false, false, ""},
		"Loopback": {"The traffic to the own host stays on it.", "http://127.0.0.1:8200", false, false, false, ""},
		"Refused":  {"The message names both fixes.", "http://example.com", false, false, true, refused},
		"Allowed":  {"The store can allow it.", "http://example.com", true, false, true, ""},
		"Operator": {"The operator can allow it for all stores.", "http://example.com", false, true, true, ""},
		"Other":    {"Another scheme stays refused.", "ftp://example.com", true, true, false, "spec.server: must begin with https://"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, plain, err := provider.ParseServer(plain{allowed: tc.operator}, "spec.server", tc.raw, tc.allowed)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || plain != tc.plain {
				t.Errorf("\n%s\nParseServer(%q): plain %t, error %q, want %t, %q", tc.reason, tc.raw, plain, got, tc.plain, tc.want)
			}
		})
	}
}
