package client

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

func TestConnect(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.OnePasswordConnect)
		token  string
		want   string // a part of the error
	}{
		"HTTPS": {"A server with TLS is accepted.", func(s *v1alpha1.OnePasswordConnect) { s.Spec.ConnectHost = "https://connect.example" }, "t", ""},
		"HTTP":  {"A token is not sent without TLS, and the message has both ways out.", func(s *v1alpha1.OnePasswordConnect) { s.Spec.ConnectHost = "http://connect.example" }, "t", "spec.connectHost: plain http is for the operator's own host (127.0.0.1, localhost) only; use https, or set spec.allowPlainHTTP"},
		"Plain": {"The owner of the store can allow it.", func(s *v1alpha1.OnePasswordConnect) {
			s.Spec.ConnectHost, s.Spec.AllowPlainHTTP = "http://connect.example", true
		}, "t", ""},
		"FTP": {"It allows no other scheme.", func(s *v1alpha1.OnePasswordConnect) {
			s.Spec.ConnectHost, s.Spec.AllowPlainHTTP = "ftp://connect.example", true
		}, "t", "spec.connectHost: must begin with https://"},
		"User":     {"An address has no credentials.", func(s *v1alpha1.OnePasswordConnect) { s.Spec.ConnectHost = "https://a:b@connect.example" }, "t", "spec.connectHost: must have no user"},
		"NoVault":  {"A store needs a vault.", func(s *v1alpha1.OnePasswordConnect) { s.Spec.Vaults = nil }, "t", "spec.vaults: has no vault"},
		"NoToken":  {"A store needs a token.", func(s *v1alpha1.OnePasswordConnect) { s.Spec.Auth.SecretRef.ConnectTokenSecretRef.Key = "none" }, "t", "spec.auth.secretRef.connectTokenSecretRef: Secret shop/onepassword has no value"},
		"Space":    {"White space around a token is ignored.", func(*v1alpha1.OnePasswordConnect) {}, " t\n", ""},
		"TwoLines": {"A token has no line break, which would begin another header.", func(*v1alpha1.OnePasswordConnect) {}, "c4n4ry\nX: y", "spec.auth.secretRef.connectTokenSecretRef: is not a token of Connect"},
		"Blank":    {"An empty token is no token.", func(*v1alpha1.OnePasswordConnect) {}, " ", "spec.auth.secretRef.connectTokenSecretRef: is not a token of Connect"},
		"CA":       {"A certificate must be one.", func(s *v1alpha1.OnePasswordConnect) { s.Spec.CABundle = []byte("x") }, "t", "spec.caBundle: has no certificate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := storeOf("https://127.0.0.1:1")
			tc.change(s)
			_, err := Connect(t.Context(), s, fake.Credentials{"token": tc.token})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\n%v", tc.reason, err)
			case tc.want != "" && (provider.ClassOf(err) != provider.Invalid || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "c4n4ry")):
				t.Errorf("%s\ngot %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// TestCheck checks stores, with and without TLS.
func TestCheck(t *testing.T) {
	srv := start(t)
	srv.AddToken("other", "none")
	cases := map[string]struct {
		reason string
		plain  bool
		token  string
		want   string // the class and a part of the error
	}{
		"Good":     {"A login that works is no error.", false, emulator.DefaultToken, ""},
		"Plain":    {"A store without TLS warns.", true, emulator.DefaultToken, "spec.allowPlainHTTP: the token and all values are sent without TLS"},
		"Unknown":  {"Another token is denied.", false, "wrong", "Denied: spec.auth.secretRef.connectTokenSecretRef: the Connect server does not accept the token"},
		"NoAccess": {"A token without the vault is not valid for the store.", false, "other", `Invalid: spec.vaults: there is no vault "shop", or the token has no access to it`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := client(t, srv)
			c.plain = tc.plain
			c.api.Authorization = func(context.Context) (string, error) { return "Bearer " + tc.token, nil }
			err, got := c.Check(soon(t)), ""
			var warnings provider.Warnings
			switch w, ok := err.(provider.Warnings); { //nolint:errorlint // Check returns Warnings unwrapped.
			case ok:
				warnings, got = w, strings.Join(w, "")
			case err != nil:
				got = string(provider.ClassOf(err)) + ": " + err.Error()
			}
			if !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("%s\ngot %q and %v, want %q", tc.reason, got, warnings, tc.want)
			}
		})
	}
}

// TestIdentity compares the addresses of stores.
func TestIdentity(t *testing.T) {
	place := func(url string, vaults ...string) string {
		s := storeOf(url)
		s.Spec.Vaults = vaults
		c, err := Connect(t.Context(), s, credentials)
		if err != nil {
			t.Fatal(err)
		}
		id, err := c.(*Client).Identity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return id.Place
	}
	want := []string{`https://connect.example:443 ["a","b"]`, `https://connect.example:443 ["a","b"]`, `https://connect.example:443/x ["b"]`}
	got := []string{place("https://connect.example", "a", "b"), place("https://CONNECT.example:443/", "a", "b"), place("https://connect.example/x", "b")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
