package ecrtoken

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	// canary is in texts that no message may show.
	canary = "c4n4ry"
	role   = "arn:aws:iam::000000000000:role/images"
	relay  = "arn:aws:iam::000000000000:role/relay"
)

func connectTo(t testing.TB, scope v1alpha1.ECRScope, endpoint string, opts ...awstest.Option) (*Generator, error) {
	t.Helper()
	g := &v1alpha1.ECRAuthorizationToken{}
	g.Spec.Scope = scope
	c, err := awstest.Connect(t, g, Connect, endpoint, opts...)
	if err != nil {
		return nil, err
	}
	return c.(*Generator), nil
}

func client(t testing.TB, scope v1alpha1.ECRScope, endpoint string, opts ...awstest.Option) *Generator {
	t.Helper()
	c, err := connectTo(t, scope, endpoint, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGenerate(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	roles := emulator.WithRoles(
		emulator.Role{ARN: relay, Principals: []string{"arn:aws:iam::000000000000:user/test"}},
		emulator.Role{ARN: role, Principals: []string{relay}, ExternalID: "shop-42"},
	)
	type call struct{ Service, Operation string }
	login, assumed := call{"ecr", "GetAuthorizationToken"}, call{"sts", "AssumeRole"}
	cases := map[string]struct {
		reason   string
		scope    v1alpha1.ECRScope
		opts     []awstest.Option
		endpoint string // the registry endpoint of the login
		calls    []call
	}{
		"Default": {reason: "Without a scope, the registries are private.", endpoint: "https://000000000000.dkr.ecr.eu-central-1.amazonaws.com", calls: []call{login, login}},
		"Private": {reason: "The scope private can be set.", scope: v1alpha1.ECRPrivate, endpoint: "https://000000000000.dkr.ecr.eu-central-1.amazonaws.com", calls: []call{login, login}},
		"Public":  {reason: "The public registry has one address, and its service is in one region.", scope: v1alpha1.ECRPublic, endpoint: "https://public.ecr.aws", calls: []call{{"ecr-public", "GetAuthorizationToken"}, {"ecr-public", "GetAuthorizationToken"}}},
		"Chain": {
			reason: "The roles are assumed once for all logins.",
			opts: []awstest.Option{awstest.WithRole(role), func(s *awstest.Store) {
				s.AdditionalRoles, s.ExternalID = []string{relay}, "shop-42"
			}},
			endpoint: "https://000000000000.dkr.ecr.eu-central-1.amazonaws.com", calls: []call{assumed, assumed, login, login},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t, roles, emulator.WithRegion("eu-central-1"), emulator.WithClock(func() time.Time { return now }))
			t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL())
			c := client(t, tc.scope, srv.URL(), append(tc.opts, func(s *awstest.Store) { s.Region = "eu-central-1" })...)
			var passwords []string
			for range 2 {
				got, err := c.Generate(t.Context())
				if err != nil {
					t.Fatalf("%s\nGenerate(...): %s", tc.reason, err)
				}
				passwords = append(passwords, string(got.Values["password"]))
				expires := now.Add(12 * time.Hour)
				want := provider.Generated{Expires: expires, Values: map[string][]byte{
					"username": []byte("AWS"), "password": got.Values["password"], "proxy_endpoint": []byte(tc.endpoint),
					"expires_at": []byte(strconv.FormatInt(expires.Unix(), 10)),
				}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\nGenerate(...): -want, +got:\n%s", tc.reason, diff)
				}
			}
			if passwords[0] == "" || passwords[0] == passwords[1] {
				t.Errorf("%s\nEach login must have a new password: got %q", tc.reason, passwords)
			}
			var calls []call
			for _, one := range srv.Calls() {
				calls = append(calls, call{one.Service, one.Operation})
			}
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGenerateFails(t *testing.T) {
	denying := func(action string) []emulator.Option {
		return []emulator.Option{awstest.Denying(emulator.Deny{Action: action})}
	}
	const user = "arn:aws:iam::000000000000:user/test is not allowed to perform "
	cases := map[string]struct {
		reason string
		scope  v1alpha1.ECRScope
		srv    []emulator.Option
		opts   []awstest.Option
		fault  *emulator.Fault
		want   *provider.Error
		calls  int // 0 means 1
	}{
		"Key":         {reason: "The error of an unknown key names the field.", opts: []awstest.Option{awstest.WithKey("other", canary)}, want: provider.NewError(provider.Denied, "spec.auth.secretRef.accessKeyIDSecretRef: AWS does not know the access key id, or a session token is missing or wrong")},
		"Secret":      {reason: "The error of a wrong secret key names the field.", opts: []awstest.Option{awstest.WithKey("test", canary)}, want: provider.NewError(provider.Denied, "spec.auth.secretRef.secretAccessKeySecretRef: the secret access key does not match the access key id, or the clock of the operator is wrong")},
		"Role":        {reason: "The error of a denied role names spec.role.", opts: []awstest.Option{awstest.WithRole(role)}, want: provider.NewError(provider.Denied, "spec.role: cannot assume role "+role+": the caller is not allowed to assume the role; allow it in the caller's policy, and in the role's trust policy (principal, spec.externalID, spec.sessionTags)")},
		"Denied":      {reason: "The error names the missing permission.", srv: denying("ecr:*"), want: provider.NewError(provider.Denied, user+"ecr:GetAuthorizationToken; allow it in a policy")},
		"Public":      {reason: "The error names the permission for the public registry.", scope: v1alpha1.ECRPublic, srv: denying("ecr-public:*"), want: provider.NewError(provider.Denied, user+"ecr-public:GetAuthorizationToken; allow it in a policy")},
		"Bearer":      {reason: "The error names the second permission for the public registry.", scope: v1alpha1.ECRPublic, srv: denying("sts:*"), want: provider.NewError(provider.Denied, user+"sts:GetServiceBearerToken; allow it in a policy")},
		"Silent":      {reason: "The error names both permissions if AWS names none.", scope: v1alpha1.ECRPublic, fault: &emulator.Fault{Code: "AccessDeniedException", Message: canary}, want: provider.NewError(provider.Denied, "access denied; allow ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken in a policy")},
		"Throttled":   {reason: "The wait that AWS asks for is passed on, without waiting here.", fault: &emulator.Fault{Code: "ThrottlingException", Message: canary, RetryAfter: 7 * time.Second}, want: &provider.Error{Class: provider.Throttled, Message: "AWS throttles the calls; retrying with back-off", RetryAfter: 7 * time.Second}},
		"Server":      {reason: "An internal error of AWS is retried.", fault: &emulator.Fault{Code: "ServerException", Status: 500, Message: canary}, want: provider.NewError(provider.Unavailable, "AWS has an internal error"), calls: 2},
		"Status":      {reason: "A server error of a proxy is retried.", fault: &emulator.Fault{Status: 503}, want: provider.NewError(provider.Unavailable, "AWS returned status 503"), calls: 2},
		"Parameter":   {reason: "A rejected request is not retried.", fault: &emulator.Fault{Code: "InvalidParameterException", Message: canary}, want: provider.NewError(provider.Invalid, "AWS rejects the request as invalid; check the spec")},
		"Unsupported": {reason: "A region without the service is Invalid.", fault: &emulator.Fault{Code: "UnsupportedCommandException", Message: canary}, want: provider.NewError(provider.Invalid, "AWS has no registries of this scope in the region; correct spec.scope or spec.region")},
		"Unknown":     {reason: "An unknown error code is Unavailable.", fault: &emulator.Fault{Code: "NewException", Message: canary}, want: provider.NewError(provider.Unavailable, "AWS returned the error NewException")},
		"Truncated":   {reason: "A truncated answer is Unavailable.", fault: &emulator.Fault{Body: emulator.BodyTruncated}, want: provider.NewError(provider.Unavailable, "the response of AWS is incomplete or damaged")},
		"Aborted":     {reason: "A closed connection is Unavailable.", fault: &emulator.Fault{Body: emulator.BodyAborted}, want: provider.NewError(provider.Unavailable, "the response of AWS is incomplete or damaged")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t, tc.srv...)
			t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL())
			if tc.fault != nil {
				srv.Inject(*tc.fault)
			}
			c := client(t, tc.scope, srv.URL(), tc.opts...)
			got, err := c.Generate(t.Context())
			if diff := cmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("%s\nGenerate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if len(got.Values) > 0 {
				t.Errorf("%s\nGenerate(...): an error comes without values, got %d", tc.reason, len(got.Values))
			}
			if want := max(1, tc.calls); srv.Count() != want {
				t.Errorf("%s\nGenerate(...): %d calls, want %d", tc.reason, srv.Count(), want)
			}
			if diff := cmp.Diff(error(tc.want), c.Check(t.Context())); diff != "" {
				t.Errorf("%s\nCheck(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAnswers uses answers of other servers than AWS, and answers of AWS that the emulator does not give.
func TestAnswers(t *testing.T) {
	lacks := provider.NewError(provider.Unavailable, "the response of AWS has no login; check spec.endpoint")
	damaged := provider.NewError(provider.Unavailable, "the response of AWS is incomplete or damaged")
	denied := provider.NewError(provider.Denied, "access denied; allow ecr:GetAuthorizationToken in a policy")
	cases := map[string]struct {
		reason string
		status int
		header string // value of X-Amzn-ErrorType
		body   string
		want   error
	}{
		"Good":       {"A complete answer of AWS is a login.", 200, "", `{"authorizationData":[{"authorizationToken":"QVdTOmE6Yg==","expiresAt":1.5e9,"proxyEndpoint":"https://x"}]}`, nil},
		"Page":       {"An answer with status 200 of another server is no login.", 200, "", "<html>" + canary, damaged},
		"Empty":      {"An empty object has no login.", 200, "", `{}`, lacks},
		"Null":       {"A null list has no login.", 200, "", `{"authorizationData":null}`, lacks},
		"None":       {"An empty list has no login.", 200, "", `{"authorizationData":[]}`, lacks},
		"NullInList": {"A list of null has no login.", 200, "", `{"authorizationData":[null]}`, lacks},
		"Text":       {"A value that is not a list is a damaged answer.", 200, "", `{"authorizationData":"` + canary + `"}`, damaged},
		"NoToken":    {"An answer without a token has no login.", 200, "", `{"authorizationData":[{"expiresAt":1.5e9}]}`, lacks},
		"NoEnd":      {"An answer without an expiry has no login.", 200, "", `{"authorizationData":[{"authorizationToken":"QVdTOmE="}]}`, lacks},
		"NoBase64":   {"A token that is not base64 is no login.", 200, "", `{"authorizationData":[{"authorizationToken":"` + canary + `!","expiresAt":1.5e9}]}`, lacks},
		"NoPassword": {"A token without a password is no login.", 200, "", `{"authorizationData":[{"authorizationToken":"QVdTOg==","expiresAt":1.5e9}]}`, lacks},
		"NoColon":    {"A token without a colon is no login.", 200, "", `{"authorizationData":[{"authorizationToken":"QVdT","expiresAt":1.5e9}]}`, lacks},
		"Header":     {"An error code can be in the header.", 400, "AccessDeniedException:http://internal.amazon.com/", "{}", denied},
		"Namespace":  {"An error code can have a namespace.", 400, "", `{"__type":"com.amazonaws.ecr#AccessDeniedException","message":"` + canary + `"}`, denied},
		"Code":       {"An error code can be in the field code.", 400, "", `{"code":"AccessDeniedException"}`, denied},
		"NoCode":     {"Without an error code the HTTP status is shown.", 418, "", canary, provider.NewError(provider.Unavailable, "AWS returned status 418")},
		"Redirect":   {"A redirect is not followed, because the request is signed.", 302, "", "", provider.NewError(provider.Unavailable, "AWS returned status 302")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amzn-ErrorType", tc.header)
				w.Header().Set("Location", "http://127.0.0.1:1/"+canary)
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body)) // The client may have closed the connection.
			}))
			t.Cleanup(srv.Close)
			got, err := client(t, "", srv.URL).Generate(t.Context())
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Errorf("%s\nGenerate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if tc.want == nil && string(got.Values["password"]) != "a:b" {
				t.Errorf("a password can contain a colon: got %q", got.Values["password"])
			}
		})
	}
}

// TestRetries retries as often as the spec says, and not after the caller's deadline.
func TestRetries(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, "", srv.URL(), awstest.WithRetries(3))
	srv.Inject(emulator.Fault{Status: 503, Times: 2})
	srv.Inject(emulator.Fault{Body: emulator.BodyNone, Times: 1})
	if _, err := c.Generate(t.Context()); err != nil || srv.Count("GetAuthorizationToken") != 4 {
		t.Errorf("the fourth attempt must succeed: got %v after %d", err, srv.Count("GetAuthorizationToken"))
	}

	remove := srv.Inject(emulator.Fault{Hang: true})
	defer remove()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Generate(ctx)
	if diff := cmp.Diff(error(provider.NewError(provider.Unavailable, "AWS did not answer in time")), err); diff != "" {
		t.Errorf("A caller must not wait forever: -want error, +got error:\n%s", diff)
	}

	remove()
	srv.Inject(emulator.Throttled())
	slow := client(t, "", srv.URL(), awstest.WithRetries(100), func(s *awstest.Store) { s.RetrySettings.RetryInterval = "1h" })
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = slow.Generate(ctx)
	if diff := cmp.Diff(error(provider.NewError(provider.Throttled, "AWS throttles the calls; retrying with back-off")), err); diff != "" {
		t.Errorf("A timeout between two attempts must report the cause of the retries: -want error, +got error:\n%s", diff)
	}
}

func TestConnectFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		scope  v1alpha1.ECRScope
		change awstest.Option
		want   error
	}{
		"Scope":    {"An unknown scope is rejected.", "both", func(*awstest.Store) {}, provider.NewError(provider.Invalid, `spec.scope: "both" is not valid; set private or public`)},
		"Region":   {"A missing region is rejected.", "", func(s *awstest.Store) { s.Region = "" }, provider.NewError(provider.Invalid, "spec.region: required with spec.auth; set it, for example to eu-central-1")},
		"NoRegion": {"A region with other characters is rejected, because it becomes part of a host name.", "", func(s *awstest.Store) { s.Region = "evil.example/" }, provider.NewError(provider.Invalid, `spec.region: "evil.example/" is not a region; write it as eu-central-1`)},
		"Endpoint": {"Plain http to another host is rejected, because the requests are signed.", "", func(s *awstest.Store) { s.Endpoint = "http://aws.example" }, provider.NewError(provider.Invalid, "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https")},
		"Blank":    {"A blank key is rejected.", "", awstest.WithKey(" ", canary), provider.NewError(provider.Invalid, "spec.auth.secretRef.accessKeyIDSecretRef: the value is blank; store the complete value")},
		"Ambient":  {"The operator's identity cannot be used unless the operator allows it.", "", func(s *awstest.Store) { s.Auth = nil }, provider.NewError(provider.Invalid, "spec.auth: auth is not set")},
		"Interval": {"Invalid retry settings are rejected before any call.", "", func(s *awstest.Store) { s.RetrySettings.RetryInterval = "soon" }, provider.NewError(provider.Invalid, `spec.retrySettings.retryInterval: "soon" is not a duration; write it as 30s, 15m or 1h`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := connectTo(t, tc.scope, "https://ecr.invalid", tc.change)
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Errorf("%s\nConnect(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%s\nThe error shows a value: %s", tc.reason, err)
			}
		})
	}
}

func TestClose(t *testing.T) {
	if err := client(t, "", "https://ecr.invalid").Close(); err != nil {
		t.Errorf("Close(): %s", err)
	}
}
