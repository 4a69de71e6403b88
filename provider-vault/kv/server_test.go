package kv

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func TestTLS(t *testing.T) {
	srv := vaulttest.Start(t, vaulttest.WithTLS())
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/*" { capabilities = ["read", "list"] }`)
	mustPut(t, srv, "shop/db", db)
	other := vaulttest.NewAuthority(t)
	cert, key := srv.TLS.Client("shop")
	foreign, foreignKey := other.Client("shop")
	srv.Enable("cert")
	srv.Do(http.MethodPost, "auth/cert/certs/shop", M{"certificate": string(srv.TLS.PEM), "token_policies": "reader"})
	secrets := creds{
		"token": srv.Token(M{"policies": []string{"reader"}}), "ca": string(srv.TLS.PEM), "other-ca": string(other.PEM), "garbage": "c4n4ry",
		"cert": string(cert), "key": string(key), "foreign": string(foreign), "foreign-key": string(foreignKey),
		"upside-down": string(srv.TLS.PEM) + string(cert),
	}
	byToken := v1alpha1.VaultAuth{TokenSecretRef: new(ref("token"))}
	byCert := func(cert, key, role string) v1alpha1.VaultAuth {
		return v1alpha1.VaultAuth{Cert: &v1alpha1.CertAuth{ClientCert: ref(cert), SecretRef: ref(key), Role: role}}
	}
	provided := func(kind common.CAProviderType, key string) *common.CAProvider {
		return &common.CAProvider{Type: kind, SecretKeySelector: ref(key)}
	}
	ca := srv.TLS.PEM
	cases := map[string]struct {
		auth   v1alpha1.VaultAuth
		change func(*v1alpha1.VaultKVSpec)
		want   string
	}{
		"Bundle":        {byToken, func(s *v1alpha1.VaultKVSpec) { s.CABundle = ca }, db},
		"Provider":      {byToken, func(s *v1alpha1.VaultKVSpec) { s.CAProvider = provided("Secret", "ca") }, db},
		"ConfigMap":     {byToken, func(s *v1alpha1.VaultKVSpec) { s.CAProvider = provided("ConfigMap", "ca") }, db},
		"Both":          {byToken, func(s *v1alpha1.VaultKVSpec) { s.CABundle, s.CAProvider = ca, provided("Secret", "ca") }, "Invalid: spec.caProvider: set either"},
		"NoSecret":      {byToken, func(s *v1alpha1.VaultKVSpec) { s.CAProvider = provided("Secret", "none") }, "Invalid: spec.caProvider: Secret"},
		"NoConfigMap":   {byToken, func(s *v1alpha1.VaultKVSpec) { s.CAProvider = provided("ConfigMap", "none") }, "Invalid: spec.caProvider: ConfigMap"},
		"NoType":        {byToken, func(s *v1alpha1.VaultKVSpec) { s.CAProvider = provided("", "ca") }, "Invalid: spec.caProvider: type \"\" is not valid; write Secret or ConfigMap"},
		"NotInProvider": {byToken, func(s *v1alpha1.VaultKVSpec) { s.CAProvider = provided("ConfigMap", "garbage") }, "Invalid: spec.caProvider: has no certificate"},
		"NoPEM":         {byToken, func(s *v1alpha1.VaultKVSpec) { s.CABundle = []byte("c4n4ry") }, "Invalid: spec.caBundle: has no certificate"},
		"Unknown":       {byToken, func(*v1alpha1.VaultKVSpec) {}, "Unavailable: logging in: spec.caBundle: the server's certificate is signed by an authority that is not trusted"},
		"Other":         {byToken, func(s *v1alpha1.VaultKVSpec) { s.CAProvider = provided("Secret", "other-ca") }, "Unavailable: logging in: spec.caProvider: the server's certificate is signed by an authority that is not trusted"},
		"OtherBundle":   {byToken, func(s *v1alpha1.VaultKVSpec) { s.CABundle = other.PEM }, "Unavailable: logging in: spec.caBundle: the server's certificate is signed by an authority that is not trusted"},
		"WrongName": {byToken, func(s *v1alpha1.VaultKVSpec) {
			s.CABundle, s.Server = ca, strings.Replace(s.Server, "127.0.0.1", "localhost", 1)
		}, "Unavailable: logging in: spec.server: the server's certificate is for another name"},
		"PlainToTLS": {byToken, func(s *v1alpha1.VaultKVSpec) { s.Server = strings.Replace(s.Server, "https", "http", 1) }, "Unavailable: spec.server: the response with status 400 is not from Vault"},
		"TLSToPlain": {byToken, func(s *v1alpha1.VaultKVSpec) { s.Server = strings.Replace(srv.URL, "http", "https", 1) }, "Unavailable: logging in: spec.server: the server does not use TLS"},
		"ClientTLS": {byToken, func(s *v1alpha1.VaultKVSpec) {
			s.CABundle, s.ClientTLS = ca, &v1alpha1.ClientTLS{CertSecretRef: ref("cert"), KeySecretRef: ref("key")}
		}, db},
		"ClientTLSGarbage": {byToken, func(s *v1alpha1.VaultKVSpec) {
			s.CABundle, s.ClientTLS = ca, &v1alpha1.ClientTLS{CertSecretRef: ref("cert"), KeySecretRef: ref("garbage")}
		}, "Invalid: spec.clientTLS.certSecretRef and spec.clientTLS.keySecretRef: "},
		"Cert":        {byCert("cert", "key", ""), func(s *v1alpha1.VaultKVSpec) { s.CABundle = ca }, db},
		"CertRole":    {byCert("cert", "key", "shop"), func(s *v1alpha1.VaultKVSpec) { s.CABundle = ca }, db},
		"CertNoRole":  {byCert("cert", "key", "other"), func(s *v1alpha1.VaultKVSpec) { s.CABundle = ca }, "Denied: spec.auth.cert.clientCert: Vault does not accept"},
		"CertForeign": {byCert("foreign", "foreign-key", ""), func(s *v1alpha1.VaultKVSpec) { s.CABundle = ca }, "Denied: spec.auth.cert.clientCert: Vault does not accept"},
		"CertMixed":   {byCert("cert", "foreign-key", ""), func(s *v1alpha1.VaultKVSpec) { s.CABundle = ca }, "Invalid: spec.auth.cert.clientCert and spec.auth.cert.secretRef: the private key matches none of the certificates"},
		"CertOrder":   {byCert("upside-down", "key", ""), func(s *v1alpha1.VaultKVSpec) { s.CABundle = ca }, db},
		"CertMissing": {byCert("none", "key", ""), func(s *v1alpha1.VaultKVSpec) { s.CABundle = ca }, "Invalid: spec.auth.cert.clientCert: Secret"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			client, err := Connect(t.Context(), appRole(srv.Address, withAuth(tc.auth), tc.change), secrets)
			got := ""
			if err != nil {
				got = string(provider.ClassOf(err)) + ": " + err.Error()
			} else {
				got = read1(t, client.(*Client))
				if err := provider.Close(client); err != nil {
					t.Error(err)
				}
			}
			if !strings.HasPrefix(got, tc.want) || strings.Contains(strings.ReplaceAll(got, db, ""), "c4n4ry") {
				t.Errorf("got %q, want %q…", got, tc.want)
			}
		})
	}
}

// plainCreds are the Credentials of an operator with a setting for plain HTTP.
type plainCreds struct {
	creds
	plain bool
}

func (c plainCreds) PlainHTTPAllowed() bool { return c.plain }

func TestAddress(t *testing.T) {
	cases := map[string]struct {
		server   string
		insecure bool
		plain    bool // The operator allows it for all stores.
		want     string
	}{
		"HTTPS":        {"https://vault.example:8200", false, false, ""},
		"Path":         {"https://example/vault", false, false, ""},
		"Loopback":     {"http://127.0.0.1:8200", false, false, ""},
		"Loopback6":    {"http://[::1]:8200", false, false, ""},
		"Localhost":    {"http://localhost:8200", false, false, ""},
		"Plain":        {"http://vault.example:8200", false, false, "spec.server: plain http is for the operator's own host"},
		"PlainAllowed": {"http://vault.example:8200", false, true, ""},
		"Insecure":     {"http://vault.example:8200", true, false, ""},
		"InsecureFile": {"file:///etc/passwd", true, false, "spec.server: is not a URL"},
		"InsecureUp":   {"http://vault.example/../x", true, false, "spec.server: the path"},
		"LookAlike":    {"http://127.0.0.1.example:8200", false, false, "spec.server: plain http"},
		"User":         {"https://u:p@vault.example", false, false, "spec.server: must have no user"},
		"Query":        {"https://vault.example?x", false, false, "spec.server: must have no user, query"},
		"Up":           {"https://vault.example/../x", false, false, "spec.server: the path"},
		"File":         {"file:///etc/passwd", false, false, "spec.server: is not a URL"},
		"Unix":         {"unix:///run/vault.sock", false, false, "spec.server: is not a URL"},
		"UnixHost":     {"unix://run/vault.sock", false, false, "spec.server: must begin with https"},
		"Garbage":      {"::", false, false, "spec.server: is not a URL"},
		"Empty":        {"", false, false, "spec.server: not set"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Connect(t.Context(), appRole(tc.server, func(s *v1alpha1.VaultKVSpec) { s.AllowPlainHTTP = tc.insecure }), plainCreds{plain: tc.plain})
			if tc.want == "" && err != nil || tc.want != "" && (provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestInsecure reads from a server without TLS. 0.0.0.0 leads to this host, and is no loopback address.
func TestInsecure(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(strings.Replace(srv.URL, "127.0.0.1", "0.0.0.0", 1), func(s *v1alpha1.VaultKVSpec) { s.AllowPlainHTTP = true }), secrets)
	if got := read1(t, c); got != db {
		t.Errorf("got %q", got)
	}
	var warnings provider.Warnings
	if err := c.Check(t.Context()); !errors.As(err, &warnings) || !strings.HasPrefix(warnings[0], "spec.server: the traffic is not encrypted") {
		t.Errorf("the check returns %v, want a warning", err)
	}
}

func TestHeaders(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) {
		s.Headers = map[string]string{"x-proxy": "yes"}
		s.ReadYourWrites = true
	}), secrets)
	reads(t, c, 1)
	for _, call := range srv.Calls() {
		got := []string{call.Header.Get("X-Proxy"), call.Header.Get("X-Vault-Inconsistent"), call.Header.Get("X-Vault-Request")}
		if diff := cmp.Diff([]string{"yes", "", "true"}, got); diff != "" {
			t.Errorf("%s: headers -want, +got:\n%s", call.Path, diff)
		}
	}
	srv.Reset()
	c = connect(t, appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) { s.ForwardInconsistent = true }), secrets)
	// OpenBao does not know the header, and ignores it.
	if got := read1(t, c); srv.Flavor() == vaulttest.Vault && !strings.HasPrefix(got, "Invalid: spec.forwardInconsistent: ") {
		t.Errorf("a server that does not allow the header must be reported: %s", got)
	}
	if n := srv.Count(func(c vaulttest.Call) bool { return c.Header.Get("X-Vault-Inconsistent") == "forward-active-node" }); n != 1 {
		t.Errorf("%d calls ask for it, want 1", n)
	}
	for _, name := range []string{"X-Vault-Token", "x-vault-namespace", "Host", "a b", "a\nb", ""} {
		_, err := Connect(t.Context(), appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) { s.Headers = map[string]string{name: "x"} }), secrets)
		if provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), "spec.headers: ") {
			t.Errorf("header %q: error %v, want Invalid that names spec.headers", name, err)
		}
	}
}

// Namespaces need Vault's enterprise edition. The headers show that they were requested.
func TestNamespaces(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) { s.Namespace, s.Auth.Namespace = "team/shop", "team" }), secrets)
	_ = read1(t, c) // The answer of this edition does not matter.
	var got []string
	for _, call := range srv.Calls() {
		got = append(got, call.Path+" "+strings.Trim(call.Header.Get("X-Vault-Namespace"), "/"))
	}
	if !strings.HasPrefix(strings.Join(got, ","), "auth/approle/login team") {
		t.Errorf("calls %v, want a login in the namespace team", got)
	}
}

// Neither the address nor the token, nor any other setting, comes from the operator's environment.
func TestEnvironment(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	var astray atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { astray.Add(1) }))
	t.Cleanup(trap.Close)
	for name, value := range map[string]string{
		"VAULT_ADDR": trap.URL, "VAULT_AGENT_ADDR": trap.URL, "VAULT_PROXY_ADDR": trap.URL, "VAULT_HTTP_PROXY": trap.URL,
		"VAULT_TOKEN": "from-the-environment", "VAULT_NAMESPACE": "elsewhere", "VAULT_WRAP_TTL": "5m", "VAULT_CACERT": "/nonexistent",
		"VAULT_HEADERS": `{"x-stray":"yes"}`, "VAULT_MAX_RETRIES": "many", "VAULT_SKIP_VERIFY": "perhaps", "VAULT_RATE_LIMIT": "x",
		"VAULT_CLIENT_TIMEOUT": "never", "VAULT_CLIENT_CERT": "/nonexistent", "VAULT_CLIENT_KEY": "/nonexistent", "VAULT_MFA": "x",
	} {
		t.Setenv(name, value)
	}
	c := connect(t, appRole(srv.URL), secrets)
	reads(t, c, 1)
	for _, call := range srv.Calls() {
		for _, h := range []string{"X-Vault-Namespace", "X-Vault-Wrap-TTL", "X-Stray", "X-Vault-MFA"} {
			if v := call.Header.Get(h); v != "" {
				t.Errorf("%s: header %s is %q", call.Path, h, v)
			}
		}
		if call.Header.Get("X-Vault-Token") == "from-the-environment" {
			t.Errorf("%s: sent with the token of the environment", call.Path)
		}
	}
	if n := astray.Load(); n > 0 {
		t.Errorf("%d requests went to another server", n)
	}
}

func TestRetries(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	three := int32(3)
	c := connect(t, appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) {
		s.RetrySettings = &common.RetrySettings{MaxRetries: &three, RetryInterval: "1ms"}
	}), secrets)
	reads(t, c, 1)
	cases := map[string]struct {
		reason string
		status int
		header string
		want   int
	}{
		"Internal":   {"An internal error is retried.", 500, "", 4},
		"Sealed":     {"A sealed Vault is retried.", 503, "", 4},
		"Throttled":  {"Throttling without a time to wait is retried.", 429, "", 4},
		"RetryAfter": {"Throttling with a time to wait is not retried here, because the caller waits.", 429, "5", 1},
		"Denied":     {"A denied request is not retried.", 403, "", 1},
		"Invalid":    {"A rejected request is not retried.", 400, "", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv.Reset()
			defer srv.Inject(vaulttest.IsRead, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tc.header)
				w.WriteHeader(tc.status)
			})()
			_ = read1(t, c)
			if n := srv.Count(vaulttest.IsRead); n != tc.want {
				t.Errorf("%s %d tries, want %d", tc.reason, n, tc.want)
			}
		})
	}
	_, err := Connect(t.Context(), appRole(srv.URL, func(s *v1alpha1.VaultKVSpec) {
		s.RetrySettings = &common.RetrySettings{RetryInterval: "soon"}
	}), secrets)
	if provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), "spec.retrySettings.retryInterval: ") {
		t.Errorf("error %v, want Invalid that names the field", err)
	}
}

func TestLargeAnswersAreCut(t *testing.T) {
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	c := connect(t, appRole(srv.URL), secrets)
	reads(t, c, 1)
	defer srv.Inject(vaulttest.IsRead, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data":{"data":{"a":"`))
		_, _ = w.Write(bytes.Repeat([]byte("x"), 2<<20)) // The client closes the connection.
		_, _ = w.Write([]byte(`"},"metadata":{"version":1}}}`))
	})()
	if got := read1(t, c); !strings.HasPrefix(got, "Unavailable: ") || !strings.Contains(got, "1536 KiB") {
		t.Errorf("got %d bytes, %.200q, want Unavailable that names the limit", len(got), got)
	}
}
