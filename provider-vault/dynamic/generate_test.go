package dynamic

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// shape returns the form of values, without their random parts.
func shape(g provider.Generated) map[string]string {
	made := regexp.MustCompile(`[A-Z2-7]{26}|[a-z2-7]{26}|hv[bs]\.[\w-]+|[0-9a-f-]{36}|[\w]{24}`)
	s := map[string]string{}
	for k, v := range g.Values {
		s[k] = made.ReplaceAllString(string(v), "*")
	}
	return s
}

func TestGenerate(t *testing.T) {
	srv, secrets := vault(t, nil)
	account := func(prefix, groups string) map[string]string {
		return map[string]string{"username": prefix + "*", "password": "*", "limits": `{"role":"app"}`, "groups": groups, "note": ""}
	}
	both := parameters(t, M{"prefix": "x-", "groups": []string{"a", "b"}})
	cases := map[string]struct {
		reason string
		change func(*spec)
		want   map[string]string
	}{
		"Get":       {"Strings are unquoted, null is empty, and other values are JSON.", func(*spec) {}, account("", "[]")},
		"Slashes":   {"A path can start and end with a slash, as in the example of External Secrets Operator.", path("/accounts/creds/app/"), account("", "[]")},
		"Query":     {"The parameters of a GET are sent as its query.", func(s *spec) { s.Parameters = both }, account("x-", `["a","b"]`)},
		"QueryText": {"A parameter that is not a string is sent as JSON.", func(s *spec) { s.Parameters = parameters(t, M{"prefix": M{"a": 1}}) }, account(`{"a":1}`, "[]")},
		"Post":      {"The parameters of a POST are sent as its body.", func(s *spec) { s.Method, s.Parameters = "POST", both }, account("x-", `["a","b"]`)},
		"Put":       {"A PUT works like a POST.", func(s *spec) { s.Method, s.Parameters = "PUT", both }, account("x-", `["a","b"]`)},
		"Nothing":   {"A POST needs no parameters.", func(s *spec) { s.Method = "POST" }, account("", "[]")},
		"Raw": {"The raw result is the complete answer.", func(s *spec) { s.ResultType = "Raw"; s.Parameters = both }, map[string]string{
			"request_id": "*", "lease_id": "accounts/creds/app/*", "lease_duration": "600", "renewable": "true",
			"data":      `{"groups":["a","b"],"limits":{"role":"app"},"note":null,"password":"*","username":"x-*"}`,
			"wrap_info": "", "warnings": "", "auth": "", "mount_type": "accounts",
		}},
		"Auth": {"A token is returned with its properties.", tokens(t, srv, M{"orphan": true}), map[string]string{
			"client_token": "*", "accessor": "*", "policies": `["default"]`, "token_policies": `["default"]`, "metadata": "", "lease_duration": "300",
			"renewable": "true", "entity_id": "", "token_type": "service", "orphan": "true", "mfa_requirement": "", "num_uses": "0",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, app(srv.URL, tc.change), secrets)
			first, second := generate(t, c), generate(t, c)
			for _, made := range []provider.Generated{first, second} {
				if diff := cmp.Diff(tc.want, shape(made)); diff != "" {
					t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
				}
				for _, key := range []string{"password", "client_token"} {
					if v := string(made.Values[key]); v != "" && strings.Contains(made.State, v) {
						t.Errorf("the state contains the %s", key)
					}
				}
			}
			if cmp.Equal(first.Values, second.Values) || first.State == second.State {
				t.Error("each call must create new credentials")
			}
		})
	}
}

func TestExpires(t *testing.T) {
	srv, secrets := vault(t, M{"token_ttl": "1h"})
	srv.AccountRole("accounts", "long", M{"ttl": 36000, "max_ttl": 72000})
	srv.AccountRole("accounts", "leaseless", M{"leaseless": true})
	bound := func(s *spec) {
		tokens(t, srv, M{})(s)
		s.Path, s.Parameters = "auth/token/create/child", parameters(t, M{"ttl": "10h"})
	}
	srv.Do(http.MethodPost, "auth/token/roles/child", M{"allowed_policies": "default"})
	secrets["batch"] = srv.Token(M{"type": "batch", "ttl": "30m", "policies": []string{"maker", "default"}})
	cases := map[string]struct {
		reason string
		opts   []func(*spec)
		want   time.Duration
		state  []string // the fields of the state
	}{
		"Lease":     {"The lease expires first.", nil, 10 * time.Minute, []string{"bound", "creator", "lease", "life"}},
		"Token":     {"Vault revokes a lease together with the token that created it.", []func(*spec){path("accounts/creds/long")}, time.Hour, []string{"bound", "creator", "lease", "life"}},
		"Root":      {"A root token does not expire.", []func(*spec){path("accounts/creds/long"), byToken("root")}, 10 * time.Hour, []string{"lease", "life"}},
		"Batch":     {"A batch token has no accessor.", []func(*spec){path("accounts/creds/long"), byToken("batch")}, 30 * time.Minute, []string{"bound", "lease", "life"}},
		"Leaseless": {"Values without a lease have no known expiry, and cannot be revoked.", []func(*spec){path("accounts/creds/leaseless")}, 0, nil},
		"Orphan":    {"An orphan token does not depend on the token that created it.", []func(*spec){tokens(t, srv, M{"orphan": true})}, 5 * time.Minute, []string{"life", "token"}},
		"Child":     {"Vault revokes a token together with its parent.", []func(*spec){bound}, time.Hour, []string{"bound", "creator", "life", "token"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, app(srv.URL, tc.opts...), secrets)
			made := generate(t, c)
			wantExpiry(t, tc.reason, made.Expires, tc.want)
			var state map[string]json.RawMessage
			if made.State != "" {
				if err := json.Unmarshal([]byte(made.State), &state); err != nil {
					t.Fatal(err)
				}
			}
			var fields []string
			for _, f := range []string{"bound", "creator", "lease", "life", "token"} {
				if _, ok := state[f]; ok {
					fields = append(fields, f)
				}
			}
			if diff := cmp.Diff(tc.state, fields); diff != "" {
				t.Errorf("%s State -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	srv, secrets := vault(t, nil)
	srv.Mount("secret", "2")
	srv.Policy("maker", makes+`
path "secret/*" { capabilities = ["read", "update"] }
path "accounts/roles/*" { capabilities = ["read"] }
path "nowhere/*" { capabilities = ["read"] }
`)
	srv.Do(http.MethodPost, "secret/data/odd", M{"data": M{"a": "b"}})
	srv.Do(http.MethodPost, "sys/mounts/odd", M{"type": "kv", "options": M{"version": "1"}})
	srv.Do(http.MethodPost, "odd/c4n4ry", M{"not a key": "c4n4ry"})
	secrets["limited"] = srv.Token(M{"policies": []string{"maker", "default"}, "num_uses": 50})
	cases := map[string]struct {
		reason string
		opts   []func(*spec)
		want   string
	}{
		"Login":    {"A failed login is reported.", []func(*spec){func(s *spec) { s.Auth.AppRole.SecretRef = ref("wrong") }}, "Denied: spec.auth.appRole.secretRef: Vault does not accept"},
		"Policy":   {"The error names the capability to read.", []func(*spec){path("sys/auth")}, `Denied: spec.path: access denied; allow read on "sys/auth" in a policy`},
		"PolicyOn": {"The error names the capabilities to write.", []func(*spec){path("sys/auth/x"), func(s *spec) { s.Method = "POST" }}, `Denied: spec.path: access denied; allow create and update on "sys/auth/x" in a policy`},
		"Role":     {"Vault's text is not shown, because it can contain parameters.", []func(*spec){path("accounts/creds/none"), func(s *spec) { s.Parameters = parameters(t, M{"prefix": "c4n4ry"}) }}, `Invalid: spec.path: Vault rejects the request to "accounts/creds/none"; check spec.path, such as the role at its end, spec.method and spec.parameters`},
		"Nowhere":  {"A missing secrets engine is Invalid.", []func(*spec){path("nowhere/creds/app")}, `Invalid: spec.path: "nowhere/creds/app" does not exist at Vault; correct it, or spec.namespace`},
		"Absent":   {"A missing path is Invalid, not NotFound.", []func(*spec){path("secret/data/none")}, `Invalid: spec.path: "secret/data/none" does not exist at Vault`},
		"Method":   {"The error names the method that the path accepts.", []func(*spec){path("accounts/roles/app")}, `Invalid: spec.method: Vault does not support it at "accounts/roles/app"; write POST`},
		"Empty":    {"An answer without data is Invalid.", []func(*spec){path("secret/config"), func(s *spec) { s.Method, s.Parameters = "POST", parameters(t, M{"max_versions": 3}) }}, "Invalid: spec.resultType: the response of Vault has no data; correct spec.path or spec.method"},
		"Key":      {"A key that a Secret cannot have is Invalid.", []func(*spec){path("odd/c4n4ry"), byToken("root")}, `Invalid: spec.path: the response of Vault has the key "not a key", which is not valid in a Secret`},
		"Limited":  {"A token with a limited number of uses is rejected, because the credentials would be revoked with its last use.", []func(*spec){byToken("limited")}, "Invalid: spec.auth: the token can be used "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, app(srv.URL, tc.opts...), secrets)
			_, err := c.Generate(t.Context())
			wants(t, tc.reason, err, tc.want)
		})
	}
	if left := srv.Accounts("accounts"); len(left) > 0 {
		t.Errorf("no credentials must be created: %v", left)
	}
}

// Credentials that were created but cannot be returned must be revoked immediately.
func TestDiscarded(t *testing.T) {
	srv, secrets := vault(t, nil)
	token := tokens(t, srv, M{"orphan": true})
	for name, tc := range map[string]struct {
		change func(*spec)
		want   string
	}{
		"NoToken": {func(s *spec) { s.ResultType = "Auth" }, "Invalid: spec.resultType: the response of Vault has no auth; write Data, or correct spec.path"},
		"NoData":  {func(s *spec) { token(s); s.ResultType = "" }, "Invalid: spec.resultType: the response of Vault has no data; write Auth"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, app(srv.URL, tc.change), secrets)
			wants(t, "", c.Check(t.Context()), "")
			before := len(srv.Do("LIST", "auth/token/accessors", nil)["keys"].([]any))
			_, err := c.Generate(t.Context())
			wants(t, "The error names the resultType to set.", err, tc.want)
			if left := srv.Accounts("accounts"); len(left) > 0 {
				t.Errorf("accounts %v are left", left)
			}
			if after := len(srv.Do("LIST", "auth/token/accessors", nil)["keys"].([]any)); after != before {
				t.Errorf("%d tokens, %d before", after, before)
			}
		})
	}
}

// A request without an answer may have created credentials. Each retry could create more.
func TestRetries(t *testing.T) {
	srv, secrets := vault(t, nil)
	three := int32(3)
	c, _ := connect(t, app(srv.URL, func(s *spec) {
		s.RetrySettings = &common.RetrySettings{MaxRetries: &three, RetryInterval: "1ms"}
	}), secrets)
	status := vaulttest.Refuse
	cases := map[string]struct {
		reason  string
		answer  http.HandlerFunc
		want    int
		message string
	}{
		"Lost":      {"A lost answer is not retried, because Vault may have created credentials.", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 1, "Unavailable: "},
		"Internal":  {"An internal error is not retried, because Vault may have created credentials.", status(500), 1, `Unavailable: credentials of "accounts/creds/app": Vault has an internal error`},
		"Gateway":   {"A gateway error is not retried, because Vault may have created credentials.", status(502), 1, "Unavailable: "},
		"Sealed":    {"A sealed Vault is not retried, because it may have created credentials before.", status(503), 1, "Unavailable: "},
		"Throttled": {"Throttling is retried, because Vault has not handled the request.", status(429), 4, "Throttled: "},
		"Behind":    {"The answer of a node that is behind is retried, because it has not handled the request.", status(412), 4, "Unavailable: "},
		"Standby":   {"The answer of a standby is retried, because it has not handled the request.", status(473), 4, "Unavailable: "},
		"Denied":    {"A permanent error is not retried.", status(403), 1, "Denied: "},
		"Damaged":   {"A damaged answer is not retried, because Vault has created credentials.", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":{"password":"c4n4ry`)) }, 1, "Unavailable: "},
	}
	generate(t, c) // This opens connections that a request could reuse.
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv.Reset()
			creds := vaulttest.On("accounts/creds/app")
			defer srv.Inject(creds, tc.answer)()
			_, err := c.Generate(t.Context())
			wants(t, tc.reason, err, tc.message)
			if n := srv.Count(creds); n != tc.want {
				t.Errorf("%s %d requests, want %d", tc.reason, n, tc.want)
			}
		})
	}
	t.Run("Hanging", func(t *testing.T) {
		defer srv.Inject(vaulttest.On("accounts/creds/app"), vaulttest.Hang)()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := c.Generate(ctx)
		wants(t, "A call returns when its context ends.", err, "Unavailable: ")
	})
}

func TestBadFields(t *testing.T) {
	raw := func(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }
	cases := map[string]struct {
		change func(*spec)
		want   string
	}{
		"NoPath":     {path(""), "Invalid: spec.path: is empty"},
		"Up":         {path("accounts/../sys/seal"), `Invalid: spec.path: has ".." between two slashes`},
		"Version":    {path("v1/accounts/creds/app"), "Invalid: spec.path: must not begin with v1"},
		"Twice":      {path("accounts//creds"), "Invalid: spec.path: has a slash too many"},
		"Method":     {func(s *spec) { s.Method = "DELETE" }, `Invalid: spec.method: "DELETE" is not valid; write GET, POST or PUT`},
		"Result":     {func(s *spec) { s.ResultType = "All" }, `Invalid: spec.resultType: "All" is not valid; write Data, Auth or Raw`},
		"List":       {func(s *spec) { s.Parameters = raw(`["c4n4ry"]`) }, "Invalid: spec.parameters: is not a JSON object"},
		"Null":       {func(s *spec) { s.Parameters = raw(`null`) }, "Invalid: spec.parameters: is not a JSON object"},
		"Garbage":    {func(s *spec) { s.Parameters = raw(`{c4n4ry`) }, "Invalid: spec.parameters: is not a JSON object"},
		"Delay":      {func(s *spec) { s.RevocationDelay = "soon" }, `Invalid: spec.revocationDelay: "soon" is not a duration`},
		"Server":     {func(s *spec) { s.Server = "" }, "Invalid: spec.server: not set"},
		"Auth":       {func(s *spec) { s.Auth = nil }, "Invalid: spec.auth: not set"},
		"Retries":    {func(s *spec) { s.RetrySettings = &common.RetrySettings{RetryInterval: "soon"} }, "Invalid: spec.retrySettings.retryInterval: "},
		"Parameters": {func(s *spec) { s.Parameters = raw(`{}`) }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := app("http://127.0.0.1:1", tc.change)
			_, err := Connect(t.Context(), g, creds{})
			wants(t, "", err, tc.want)
			_, err = ConnectCluster(t.Context(), &v1alpha1.ClusterVaultDynamicSecret{Spec: v1alpha1.ClusterVaultDynamicSecretSpec{VaultDynamicSecretSpec: g.Spec}}, creds{})
			wants(t, "The cluster Kind has the same error.", err, tc.want)
		})
	}
}

func TestCheck(t *testing.T) {
	srv, secrets := vault(t, nil)
	good, _ := connect(t, app(srv.URL), secrets)
	wants(t, "The check of a valid login passes.", good.Check(t.Context()), "")
	bad, _ := connect(t, app(srv.URL, func(s *spec) { s.Auth.AppRole.SecretRef = ref("wrong") }), secrets)
	wants(t, "The check of a wrong login fails.", bad.Check(t.Context()), "Denied: spec.auth.appRole.secretRef: ")
	if left := srv.Accounts("accounts"); len(left) > 0 {
		t.Errorf("a check must not create credentials: %v", left)
	}
	for want, delay := range map[time.Duration]common.Duration{5 * time.Minute: "", time.Hour: "1h"} {
		c, _ := connect(t, app(srv.URL, func(s *spec) { s.RevocationDelay = delay }), secrets)
		if got := c.Linger(); got != want {
			t.Errorf("revocationDelay %q: %s, want %s", delay, got, want)
		}
	}
}
