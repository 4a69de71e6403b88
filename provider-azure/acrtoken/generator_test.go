package acrtoken

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/azureconfig"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

func TestGenerate(t *testing.T) {
	const two = "repository:shop/web:pull repository:shop/api:pull,push"
	now := time.Now().Truncate(time.Second)
	cases := map[string]struct {
		reason   string
		scope    string
		lifetime time.Duration
		calls    map[string]int
	}{
		"Refresh": {"Without a scope, the password is a refresh token.", "", 3 * time.Hour, map[string]int{emulator.CallToken: 1, emulator.CallExchange: 2, emulator.CallAccess: 0}},
		"Access":  {"With a scope, the password is an access token.", "repository:shop/web:pull", 75 * time.Minute, map[string]int{emulator.CallToken: 1, emulator.CallExchange: 2, emulator.CallAccess: 2}},
		"Scopes":  {"A token can have several scopes.", two, 75 * time.Minute, map[string]int{emulator.CallToken: 1, emulator.CallExchange: 2, emulator.CallAccess: 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t, emulator.WithClock(func() time.Time { return now }))
			g := connect(t, azureconfig.Network{}, specOf(srv, scope(tc.scope)))
			passwords := map[string]bool{}
			for range 2 {
				got, err := g.Generate(soon(t))
				if err != nil {
					t.Fatalf("%s\nGenerate(...): %s", tc.reason, err)
				}
				password := string(got.Values[KeyPassword])
				passwords[password] = true
				expires := now.Add(tc.lifetime)
				want := provider.Generated{Expires: expires, Values: map[string][]byte{
					"username": []byte("00000000-0000-0000-0000-000000000000"), "password": []byte(password), "expires_at": []byte(strconv.FormatInt(expires.Unix(), 10)),
				}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\nGenerate(...): -want, +got:\n%s", tc.reason, diff)
				}
				client, scope, ok := srv.RegistryToken(password)
				if diff := cmp.Diff([]any{reader, tc.scope, true}, []any{client, scope, ok}); diff != "" {
					t.Errorf("%s\nclient, scope and validity of the token: -want, +got:\n%s", tc.reason, diff)
				}
			}
			if len(passwords) != 2 {
				t.Errorf("%s\nEach token must be new", tc.reason)
			}
			for call, want := range tc.calls {
				if got := srv.Count(call); got != want {
					t.Errorf("%s\n%d calls of %s, want %d", tc.reason, got, call, want)
				}
			}
		})
	}
}

func TestGenerateFails(t *testing.T) {
	const pull = "repository:shop/web:pull"
	denied := "spec.registry: the registry does not accept the identity in spec.auth; grant it a role such as AcrPull"
	noScope := "spec.scope: the identity in spec.auth does not have the permissions of the scope"
	cases := map[string]struct {
		reason  string
		scope   string
		options []emulator.Option
		app     emulator.App
		fault   emulator.Fault
		class   provider.Class
		part    string
		after   time.Duration
		calls   int // to the registry
	}{
		"Secret":    {reason: "A wrong client secret sends nothing to the registry.", app: emulator.App{Secrets: []string{"other"}}, class: provider.Denied, part: "spec.auth.clientSecret: the client secret is wrong"},
		"Resource":  {reason: "A tenant without the service is named.", options: []emulator.Option{emulator.WithResources(emulator.Resource)}, class: provider.Denied, part: "spec.environment: the tenant has no Azure Container Registry of the environment"},
		"Role":      {reason: "An identity without a role is refused, without a retry.", app: emulator.App{Secrets: []string{canary}, NoRegistry: true}, class: provider.Denied, part: denied, calls: 1},
		"Firewall":  {reason: "The firewall of the registry is named.", fault: emulator.Fault{Call: emulator.CallExchange, Status: http.StatusForbidden}, class: provider.Denied, part: "spec.registry: the registry denies access; allow the operator's network in its firewall", calls: 1},
		"Invalid":   {reason: "A rejected login names the fields to check.", fault: emulator.Fault{Call: emulator.CallExchange, Status: http.StatusBadRequest}, class: provider.Invalid, part: "check registry and tenantID", calls: 1},
		"Absent":    {reason: "A server without the endpoint is no registry.", fault: emulator.Fault{Call: emulator.CallExchange, Status: http.StatusNotFound}, class: provider.Unavailable, part: "the response is not that of a container registry", calls: 1},
		"Throttled": {reason: "The time to wait is passed on, without waiting here.", fault: emulator.Throttled(7 * time.Second), class: provider.Throttled, part: "throttles", after: 7 * time.Second},
		"Slow":      {reason: "The throttling of the registry is named.", fault: emulator.Fault{Call: emulator.CallExchange, Status: http.StatusTooManyRequests, RetryAfter: 5 * time.Second}, class: provider.Throttled, part: "spec.registry: the registry throttles the calls", after: 5 * time.Second, calls: 1},
		"SlowScope": {reason: "The throttling of the second call is named.", scope: pull, fault: emulator.Fault{Call: emulator.CallAccess, Status: http.StatusTooManyRequests, RetryAfter: 5 * time.Second}, class: provider.Throttled, part: "spec.registry: the registry throttles the calls", after: 5 * time.Second, calls: 2},
		"Server":    {reason: "An error of the registry is retried.", fault: emulator.Fault{Call: emulator.CallExchange, Status: http.StatusServiceUnavailable}, class: provider.Unavailable, part: "spec.registry: the registry returned the status 503", calls: 2},
		"Scope":     {reason: "A missing permission of the scope is named.", scope: pull, fault: emulator.Fault{Call: emulator.CallAccess, Status: http.StatusUnauthorized}, class: provider.Denied, part: noScope, calls: 2},
		"Forbidden": {reason: "A forbidden scope is named.", scope: pull, fault: emulator.Fault{Call: emulator.CallAccess, Status: http.StatusForbidden}, class: provider.Denied, part: noScope, calls: 2},
		"BadScope":  {reason: "A scope that the registry does not understand is named.", scope: "pull", class: provider.Invalid, part: "spec.scope: the registry rejects the scope; write it as", calls: 2},
		"NoToken":   {reason: "An answer without a token is Unavailable.", fault: emulator.Fault{Call: emulator.CallExchange, Body: emulator.BodyNoValue}, class: provider.Unavailable, part: "spec.registry: the response has no token", calls: 1},
		"NoAccess":  {reason: "An answer without an access token is Unavailable.", scope: pull, fault: emulator.Fault{Call: emulator.CallAccess, Body: emulator.BodyNoValue}, class: provider.Unavailable, part: "spec.registry: the response has no token", calls: 2},
		"Huge":      {reason: "An answer of any size is not read.", fault: emulator.Fault{Call: emulator.CallExchange, Body: emulator.BodyHuge}, class: provider.Unavailable, part: "", calls: 1},
		"Lost":      {reason: "A closed connection is retried, and Unavailable.", fault: emulator.Fault{Call: emulator.CallExchange, Body: emulator.BodyLost}, class: provider.Unavailable, part: "spec.registry: ", calls: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t, tc.options...)
			if tc.app.Secrets != nil {
				srv.SetApp(reader, tc.app)
			}
			if tc.fault != (emulator.Fault{}) {
				srv.Inject(tc.fault)
			}
			g := connect(t, azureconfig.Network{}, specOf(srv, scope(tc.scope)))
			got, err := g.Generate(soon(t))
			if len(got.Values) > 0 {
				t.Errorf("%s\nan error comes without values", tc.reason)
			}
			fails(t, tc.reason, err, tc.class, tc.part)
			if diff := cmp.Diff(tc.after, provider.RetryAfter(err)); diff != "" {
				t.Errorf("%s\ntime to wait: -want, +got:\n%s", tc.reason, diff)
			}
			if got := srv.Count(emulator.CallExchange) + srv.Count(emulator.CallAccess); got != tc.calls {
				t.Errorf("%s\n%d calls to the registry, want %d", tc.reason, got, tc.calls)
			}
			fails(t, tc.reason, g.Check(soon(t)), tc.class, tc.part)
		})
	}
}

// fails checks the class of an error, and a part of its message. No message contains a secret.
func fails(t *testing.T, reason string, err error, class provider.Class, part string) {
	t.Helper()
	if err == nil || provider.ClassOf(err) != class || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), canary) {
		t.Errorf("%s\nerror %q (%s), want one of class %s with %q", reason, err, provider.ClassOf(err), class, part)
	}
}

// TestAnswers uses answers of other servers than a registry, and answers that the emulator does not give.
func TestAnswers(t *testing.T) {
	token := func(claims jwt.Claims) string {
		s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return `{"refresh_token":"` + s + `"}`
	}
	const noToken = "spec.registry: the response has no token of a container registry"
	cases := map[string]struct {
		reason string
		status int
		body   string
		part   string
	}{
		"Page":     {"A page with status 200 has no token.", http.StatusOK, "<html>" + canary, "spec.registry: "},
		"Empty":    {"An empty object has no token.", http.StatusOK, `{}`, noToken},
		"Null":     {"A null token is none.", http.StatusOK, `{"refresh_token":null}`, noToken},
		"Blank":    {"An empty token is none.", http.StatusOK, `{"refresh_token":""}`, noToken},
		"NoJWT":    {"A token must be a JWT, because its expiry is read.", http.StatusOK, `{"refresh_token":"` + canary + `"}`, noToken},
		"NoExpiry": {"A token without an expiry is refused.", http.StatusOK, token(jwt.RegisteredClaims{Subject: canary}), noToken},
		"Zero":     {"An expiry of zero is none.", http.StatusOK, token(jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(time.Unix(0, 0))}), noToken},
		"Text":     {"An expiry must be a number.", http.StatusOK, token(jwt.MapClaims{"exp": canary}), noToken},
		"Redirect": {"A redirect is not followed, because the request has a token.", http.StatusTemporaryRedirect, "", "spec.registry: the registry returned the status 307"},
		"Teapot":   {"Another status is shown.", http.StatusTeapot, canary, "spec.registry: the registry returned the status 418"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := connect(t, answering(tc.status, tc.body), specOf(start(t))).Generate(soon(t))
			fails(t, tc.reason, err, provider.Unavailable, tc.part)
		})
	}
}

// TestRevokedLogin has the registry refuse a cached token of Entra ID once. The next call logs in.
func TestRevokedLogin(t *testing.T) {
	srv := start(t)
	g := connect(t, azureconfig.Network{}, specOf(srv))
	if _, err := g.Generate(soon(t)); err != nil {
		t.Fatal(err)
	}
	srv.RevokeTokens()
	_, err := g.Generate(soon(t))
	fails(t, "The revoked token is refused.", err, provider.Denied, "the registry does not accept the identity")
	if _, err := g.Generate(soon(t)); err != nil || srv.Count(emulator.CallToken) != 2 {
		t.Errorf("%v after %d logins, want a second login that works", err, srv.Count(emulator.CallToken))
	}
}

func TestGenerateEnds(t *testing.T) {
	srv := start(t)
	defer srv.Inject(emulator.Fault{Call: emulator.CallExchange, Hang: true})()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := connect(t, azureconfig.Network{}, specOf(srv)).Generate(ctx)
	fails(t, "A call ends with the caller's deadline.", err, provider.Unavailable, "did not answer in time")
}

// TestConnectFails checks that a bad spec is refused before any call, for both Kinds.
func TestConnectFails(t *testing.T) {
	srv := start(t)
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.ACRAccessTokenSpec)
		part   string
	}{
		"Registry": {"A host outside the cloud gets no token.", func(s *v1alpha1.ACRAccessTokenSpec) { s.Registry = "shop.evil.example" }, "spec.registry: is not a registry of the environment PublicCloud; write it as NAME.azurecr.io"},
		"Auth":     {"A login is required.", func(s *v1alpha1.ACRAccessTokenSpec) { s.Auth.ClientSecret = nil }, "spec.auth: set exactly one of"},
		"Tenant":   {"A tenant is required.", func(s *v1alpha1.ACRAccessTokenSpec) { s.TenantID = "" }, "spec.tenantID: is missing or not valid; set the ID of the registry's tenant"},
		"Interval": {"Invalid retry settings are rejected.", func(s *v1alpha1.ACRAccessTokenSpec) { s.RetrySettings.RetryInterval = "soon" }, "spec.retrySettings.retryInterval: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := specOf(srv, tc.change)
			_, err := Provider{}.Connect(t.Context(), &v1alpha1.ACRAccessToken{Spec: spec}, creds{secret: canary})
			fails(t, tc.reason, err, provider.Invalid, tc.part)
			_, err = Provider{}.ConnectCluster(t.Context(), &v1alpha1.ClusterACRAccessToken{Spec: v1alpha1.ClusterACRAccessTokenSpec{ACRAccessTokenSpec: spec}}, creds{secret: canary})
			fails(t, tc.reason, err, provider.Invalid, tc.part)
		})
	}
	if n := srv.Count(); n > 0 {
		t.Errorf("%d calls, want none", n)
	}
}
