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
	// canary is in what no message may show.
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
		endpoint string // that the login is for
		calls    []call
	}{
		"Default": {reason: "Registries are private unless it is said.", endpoint: "https://000000000000.dkr.ecr.eu-central-1.amazonaws.com", calls: []call{login, login}},
		"Private": {reason: "It may be said.", scope: v1alpha1.ECRPrivate, endpoint: "https://000000000000.dkr.ecr.eu-central-1.amazonaws.com", calls: []call{login, login}},
		"Public":  {reason: "The public registry has one address, and is in one region.", scope: v1alpha1.ECRPublic, endpoint: "https://public.ecr.aws", calls: []call{{"ecr-public", "GetAuthorizationToken"}, {"ecr-public", "GetAuthorizationToken"}}},
		"Chain": {
			reason: "Roles are assumed once for all logins.",
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
				t.Errorf("%s\nEach login has another password: got %q", tc.reason, passwords)
			}
			var calls []call
			for _, one := range srv.CallLog() {
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
	const user = "arn:aws:iam::000000000000:user/test may not "
	cases := map[string]struct {
		reason string
		scope  v1alpha1.ECRScope
		srv    []emulator.Option
		opts   []awstest.Option
		fault  *emulator.Fault
		want   *provider.Error
		calls  int // 1 if 0
	}{
		"Key":         {reason: "An unknown key is the field's fault.", opts: []awstest.Option{awstest.WithKey("other", canary)}, want: provider.NewError(provider.Denied, "spec.auth.secretRef.accessKeyIDSecretRef: AWS does not know the access key id, or a session token is missing or wrong")},
		"Secret":      {reason: "So is a wrong secret key.", opts: []awstest.Option{awstest.WithKey("test", canary)}, want: provider.NewError(provider.Denied, "spec.auth.secretRef.secretAccessKeySecretRef: the secret access key does not belong to the access key id, or the operator's clock is wrong")},
		"Role":        {reason: "A role that cannot be assumed is another field's.", opts: []awstest.Option{awstest.WithRole(role)}, want: provider.NewError(provider.Denied, "spec.role: cannot assume role "+role+": the caller may not assume it; allow it in the caller's policy, and in the role's trust policy (principal, spec.externalID, spec.sessionTags)")},
		"Denied":      {reason: "The permission is named.", srv: denying("ecr:*"), want: provider.NewError(provider.Denied, user+"ecr:GetAuthorizationToken; allow it in a policy")},
		"Public":      {reason: "That of the public registry has another name.", scope: v1alpha1.ECRPublic, srv: denying("ecr-public:*"), want: provider.NewError(provider.Denied, user+"ecr-public:GetAuthorizationToken; allow it in a policy")},
		"Bearer":      {reason: "It takes two.", scope: v1alpha1.ECRPublic, srv: denying("sts:*"), want: provider.NewError(provider.Denied, user+"sts:GetServiceBearerToken; allow it in a policy")},
		"Silent":      {reason: "Where AWS does not say which, we do.", scope: v1alpha1.ECRPublic, fault: &emulator.Fault{Code: "AccessDeniedException", Message: canary}, want: provider.NewError(provider.Denied, "access denied; allow ecr-public:GetAuthorizationToken and sts:GetServiceBearerToken in a policy")},
		"Throttled":   {reason: "How long to wait is passed on, and not waited for here.", fault: &emulator.Fault{Code: "ThrottlingException", Message: canary, RetryAfter: 7 * time.Second}, want: &provider.Error{Class: provider.Throttled, Message: "AWS asks for fewer calls", RetryAfter: 7 * time.Second}},
		"Server":      {reason: "AWS's own failure is tried again.", fault: &emulator.Fault{Code: "ServerException", Status: 500, Message: canary}, want: provider.NewError(provider.Unavailable, "AWS has an internal error"), calls: 2},
		"Status":      {reason: "So is that of what stands before it.", fault: &emulator.Fault{Status: 503}, want: provider.NewError(provider.Unavailable, "AWS answers with status 503"), calls: 2},
		"Parameter":   {reason: "What AWS rejects is not.", fault: &emulator.Fault{Code: "InvalidParameterException", Message: canary}, want: provider.NewError(provider.Invalid, "AWS rejects the request as not valid")},
		"Unsupported": {reason: "Not every region has everything.", fault: &emulator.Fault{Code: "UnsupportedCommandException", Message: canary}, want: provider.NewError(provider.Invalid, "AWS has no such registries there; correct spec.scope or spec.region")},
		"Unknown":     {reason: "What nobody knows is Unavailable.", fault: &emulator.Fault{Code: "NewException", Message: canary}, want: provider.NewError(provider.Unavailable, "AWS answers with the error NewException")},
		"Truncated":   {reason: "Half an answer is none.", fault: &emulator.Fault{Body: emulator.BodyTruncated}, want: provider.NewError(provider.Unavailable, "the answer of AWS is cut off or damaged")},
		"Aborted":     {reason: "Nor is one that breaks off.", fault: &emulator.Fault{Body: emulator.BodyAborted}, want: provider.NewError(provider.Unavailable, "the answer of AWS is cut off or damaged")},
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
			if want := max(1, tc.calls); srv.Calls("") != want {
				t.Errorf("%s\nGenerate(...): %d calls, want %d", tc.reason, srv.Calls(""), want)
			}
			if diff := cmp.Diff(error(tc.want), c.Check(t.Context())); diff != "" {
				t.Errorf("%s\nCheck(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAnswers lets others answer than AWS, or AWS in another way than the emulator.
func TestAnswers(t *testing.T) {
	lacks := provider.NewError(provider.Unavailable, "the answer of AWS lacks the login; check spec.endpoint")
	damaged := provider.NewError(provider.Unavailable, "the answer of AWS is cut off or damaged")
	denied := provider.NewError(provider.Denied, "access denied; allow ecr:GetAuthorizationToken in a policy")
	cases := map[string]struct {
		reason string
		status int
		header string // X-Amzn-ErrorType
		body   string
		want   error
	}{
		"Good":       {"What AWS sends is a login.", 200, "", `{"authorizationData":[{"authorizationToken":"QVdTOmE6Yg==","expiresAt":1.5e9,"proxyEndpoint":"https://x"}]}`, nil},
		"Page":       {"Not everybody who says 200 is AWS.", 200, "", "<html>" + canary, damaged},
		"Empty":      {"An empty answer has no login.", 200, "", `{}`, lacks},
		"Null":       {"Nor has null.", 200, "", `{"authorizationData":null}`, lacks},
		"None":       {"Nor an empty list.", 200, "", `{"authorizationData":[]}`, lacks},
		"NullInList": {"Nor a list of nothing.", 200, "", `{"authorizationData":[null]}`, lacks},
		"Text":       {"What is no list is damaged.", 200, "", `{"authorizationData":"` + canary + `"}`, damaged},
		"NoToken":    {"A login without a token is none.", 200, "", `{"authorizationData":[{"expiresAt":1.5e9}]}`, lacks},
		"NoEnd":      {"Nor one that lasts we do not know how long.", 200, "", `{"authorizationData":[{"authorizationToken":"QVdTOmE="}]}`, lacks},
		"NoBase64":   {"A token has a form.", 200, "", `{"authorizationData":[{"authorizationToken":"` + canary + `!","expiresAt":1.5e9}]}`, lacks},
		"NoPassword": {"And two parts.", 200, "", `{"authorizationData":[{"authorizationToken":"QVdTOg==","expiresAt":1.5e9}]}`, lacks},
		"NoColon":    {"With a colon between them.", 200, "", `{"authorizationData":[{"authorizationToken":"QVdT","expiresAt":1.5e9}]}`, lacks},
		"Header":     {"A code may be in the header.", 400, "AccessDeniedException:http://internal.amazon.com/", "{}", denied},
		"Namespace":  {"A code may have a namespace.", 400, "", `{"__type":"com.amazonaws.ecr#AccessDeniedException","message":"` + canary + `"}`, denied},
		"Code":       {"A code may be called so.", 400, "", `{"code":"AccessDeniedException"}`, denied},
		"NoCode":     {"Without one the status tells.", 418, "", canary, provider.NewError(provider.Unavailable, "AWS answers with status 418")},
		"Redirect":   {"A signed request goes nowhere else.", 302, "", "", provider.NewError(provider.Unavailable, "AWS answers with status 302")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Amzn-ErrorType", tc.header)
				w.Header().Set("Location", "http://127.0.0.1:1/"+canary)
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body)) // The client may have gone.
			}))
			t.Cleanup(srv.Close)
			got, err := client(t, "", srv.URL).Generate(t.Context())
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Errorf("%s\nGenerate(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if tc.want == nil && string(got.Values["password"]) != "a:b" {
				t.Errorf("A password may have a colon: got %q", got.Values["password"])
			}
		})
	}
}

// TestRetries tries again as often as the spec says, and no longer than the caller waits.
func TestRetries(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, "", srv.URL(), awstest.WithRetries(3))
	srv.Inject(emulator.Fault{Status: 503, Times: 2})
	srv.Inject(emulator.Fault{Body: emulator.BodyNone, Times: 1})
	if _, err := c.Generate(t.Context()); err != nil || srv.Calls("GetAuthorizationToken") != 4 {
		t.Errorf("The fourth attempt succeeds: got %v after %d", err, srv.Calls("GetAuthorizationToken"))
	}

	remove := srv.Inject(emulator.Fault{Hang: true})
	defer remove()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Generate(ctx)
	if diff := cmp.Diff(error(provider.NewError(provider.Unavailable, "AWS did not answer in time")), err); diff != "" {
		t.Errorf("A caller does not wait for ever: -want error, +got error:\n%s", diff)
	}

	remove()
	srv.Inject(emulator.Throttled())
	slow := client(t, "", srv.URL(), awstest.WithRetries(100), func(s *awstest.Store) { s.RetrySettings.RetryInterval = "1h" })
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = slow.Generate(ctx)
	if diff := cmp.Diff(error(provider.NewError(provider.Throttled, "AWS asks for fewer calls")), err); diff != "" {
		t.Errorf("Who stops waiting between two attempts learns why there were more: -want error, +got error:\n%s", diff)
	}
}

func TestConnectFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		scope  v1alpha1.ECRScope
		change awstest.Option
		want   error
	}{
		"Scope":    {"There are two.", "both", func(*awstest.Store) {}, provider.NewError(provider.Invalid, `spec.scope: "both" is none; set private or public`)},
		"Region":   {"Registries are in a region.", "", func(s *awstest.Store) { s.Region = "" }, provider.NewError(provider.Invalid, "spec.region: must be set where spec.auth is, for example eu-central-1")},
		"NoRegion": {"A region is part of a host's name.", "", func(s *awstest.Store) { s.Region = "evil.example/" }, provider.NewError(provider.Invalid, `spec.region: "evil.example/" is not a region; write it as eu-central-1`)},
		"Endpoint": {"Signed requests stay off the open network.", "", func(s *awstest.Store) { s.Endpoint = "http://aws.example" }, provider.NewError(provider.Invalid, "spec.endpoint: plain http is for the operator's own host (127.0.0.1, localhost) only; use https")},
		"Blank":    {"A blank key is a mistake.", "", awstest.WithKey(" ", canary), provider.NewError(provider.Invalid, "spec.auth.secretRef.accessKeyIDSecretRef: the value is blank; store the whole value there")},
		"Ambient":  {"The operator's identity is not everybody's.", "", func(s *awstest.Store) { s.Auth = nil }, provider.NewError(provider.Invalid, "spec.auth: auth is not set")},
		"Interval": {"Settings are read at once.", "", func(s *awstest.Store) { s.RetrySettings.RetryInterval = "soon" }, provider.NewError(provider.Invalid, `spec.retrySettings.retryInterval: "soon" is not a duration; write it as 30s, 15m or 1h`)},
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
