package ststoken

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/provider/fake"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	// canary is in texts that no message may show.
	canary = "c4n4ry"
	user   = "arn:aws:iam::000000000000:user/test"
	roles  = "arn:aws:iam::000000000000:role/"
	device = "arn:aws:iam::000000000000:mfa/test"
)

// start starts an STS with a user who has an MFA device, and three roles. relay trusts the user, deploy trusts
// both. guarded trusts the user only with the MFA device.
func start(t *testing.T, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv := awstest.Start(t, append(opts,
		emulator.WithCredentials(emulator.Credential{AccessKeyID: "test", SecretAccessKey: "test", MFASerial: device, MFACodes: []string{"123456", "654321"}}),
		emulator.WithRoles(
			emulator.Role{ARN: roles + "relay", Principals: []string{user}},
			emulator.Role{ARN: roles + "deploy", Principals: []string{user, roles + "relay"}, MaxSessionDuration: 2 * time.Hour, WebIdentities: []emulator.WebIdentity{{Subject: "shop"}}},
			emulator.Role{ARN: roles + "guarded", Principals: []string{user}, MFA: true},
		))...)
	t.Setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1") // spec.endpoint is that of STS.
	return srv
}

// asking returns a generator with request parameters.
func asking(p v1alpha1.STSRequestParameters) *v1alpha1.STSSessionToken {
	g := &v1alpha1.STSSessionToken{}
	g.Spec.RequestParameters = &p
	return g
}

func client(t *testing.T, g *v1alpha1.STSSessionToken, endpoint string, opts ...awstest.Option) *Generator {
	t.Helper()
	c, err := awstest.Connect(t, g, Connect, endpoint, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Generator)
}

// whoami asks STS for the owner of an access key.
func whoami(t *testing.T, srv *emulator.Server, g provider.Generated) string {
	t.Helper()
	value := func(key string) string { return string(g.Values[key]) }
	out, err := sts.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(srv.URL()),
		Credentials: credentials.NewStaticCredentialsProvider(value("access_key_id"), value("secret_access_key"), value("session_token")),
	}).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	return *out.Arn
}

func TestGenerate(t *testing.T) {
	const session = "arn:aws:sts::000000000000:assumed-role/deploy/direct-secrets@shop@prod"
	chained := func(s *awstest.Store) { s.Role, s.AdditionalRoles = roles+"deploy", []string{roles + "relay"} }
	temporary := func(srv *emulator.Server) awstest.Option {
		return func(s *awstest.Store) {
			out, err := sts.NewFromConfig(aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(srv.URL()), Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}).
				AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String(roles + "relay"), RoleSessionName: aws.String("test")})
			if err != nil {
				t.Fatal(err)
			}
			s.Secrets = awstest.Secrets{"id": *out.Credentials.AccessKeyId, "key": *out.Credentials.SecretAccessKey, "token": *out.Credentials.SessionToken}
			s.Auth.SecretRef.SessionTokenSecretRef = &common.SecretKeySelector{Name: "aws", Key: "token"}
			s.Role = roles + "deploy"
			srv.Reset()
		}
	}
	annotated := func(s *awstest.Store) {
		s.Auth = &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Name: "shop"}}
		s.Secrets = awstest.Secrets{"jwt": fake.NewToken("", "shop", "sts.amazonaws.com", time.Now().Add(time.Hour)), "eks.amazonaws.com/role-arn": roles + "deploy"}
	}
	none := func(*emulator.Server) awstest.Option { return func(*awstest.Store) {} }
	as := func(opt awstest.Option) func(*emulator.Server) awstest.Option {
		return func(*emulator.Server) awstest.Option { return opt }
	}
	cases := map[string]struct {
		reason     string
		asks       v1alpha1.STSRequestParameters
		opt        func(*emulator.Server) awstest.Option
		wantCaller string
		lasts      time.Duration
		calls      map[string]int
	}{
		"User":      {"The access key of a user gets a session token for AWS's default of twelve hours.", v1alpha1.STSRequestParameters{}, none, user, 12 * time.Hour, map[string]int{"GetSessionToken": 2}},
		"Short":     {"A session token of a user can last 15 minutes.", v1alpha1.STSRequestParameters{SessionDuration: 900}, none, user, 15 * time.Minute, map[string]int{"GetSessionToken": 2}},
		"Long":      {"A session token of a user can last 36 hours.", v1alpha1.STSRequestParameters{SessionDuration: 129600}, none, user, 36 * time.Hour, map[string]int{"GetSessionToken": 2}},
		"Role":      {"With a role, the access key is that of the role and lasts one hour.", v1alpha1.STSRequestParameters{}, as(awstest.WithRole(roles + "deploy")), session, time.Hour, map[string]int{"AssumeRole": 2}},
		"RoleLong":  {"With a role, the access key can last as long as the role allows.", v1alpha1.STSRequestParameters{SessionDuration: 7200}, as(awstest.WithRole(roles + "deploy")), session, 2 * time.Hour, map[string]int{"AssumeRole": 2}},
		"Chain":     {"The additional roles are assumed once.", v1alpha1.STSRequestParameters{SessionDuration: 1800}, as(chained), session, 30 * time.Minute, map[string]int{"AssumeRole": 3}},
		"Annotated": {"The role can be that of the annotation of a ServiceAccount.", v1alpha1.STSRequestParameters{SessionDuration: 7200}, as(annotated), session, 2 * time.Hour, map[string]int{"AssumeRoleWithWebIdentity": 2}},
		"Temporary": {"A temporary access key can assume a role.", v1alpha1.STSRequestParameters{}, temporary, session, time.Hour, map[string]int{"AssumeRole": 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, asking(tc.asks), srv.URL(), tc.opt(srv))
			var all []provider.Generated
			for range 2 {
				got, err := c.Generate(t.Context())
				if err != nil {
					t.Fatalf("%s\nGenerate(...): %s", tc.reason, err)
				}
				all = append(all, got)
			}
			if diff := cmp.Diff(tc.calls, srv.Counts()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
			last := srv.Sessions()[len(srv.Sessions())-1]
			got := all[1]
			want := provider.Generated{Expires: last.Expires.UTC().Truncate(time.Second), Values: map[string][]byte{
				"access_key_id": []byte(last.AccessKeyID), "secret_access_key": got.Values["secret_access_key"], "session_token": got.Values["session_token"],
				"expiration": []byte(strconv.FormatInt(last.Expires.Unix(), 10)),
			}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nGenerate(...): -want, +got:\n%s", tc.reason, diff)
			}
			if d := last.Expires.Sub(last.Issued); d != tc.lasts {
				t.Errorf("%s\nThe access key lasts %s, want %s", tc.reason, d, tc.lasts)
			}
			for _, g := range all {
				if caller := whoami(t, srv, g); caller != tc.wantCaller {
					t.Errorf("%s\nThe access key is of %s, want %s", tc.reason, caller, tc.wantCaller)
				}
			}
			for _, key := range []string{"access_key_id", "secret_access_key", "session_token"} {
				if string(all[0].Values[key]) == string(all[1].Values[key]) {
					t.Errorf("two access keys must differ in their %s", key)
				}
			}
		})
	}
}

// TestTokenCode uses an MFA device, whose codes work once.
func TestTokenCode(t *testing.T) {
	refused := provider.NewError(provider.Denied, badCode)
	spent := provider.NewError(provider.Denied, spentCode)
	mfa := v1alpha1.STSRequestParameters{SerialNumber: device, TokenCode: "123456"}
	cases := map[string]struct {
		reason string
		asks   v1alpha1.STSRequestParameters
		opts   []awstest.Option
		want   []error // the errors of three calls of Generate
		calls  map[string]int
	}{
		"User":    {"A code is sent to AWS only once.", mfa, nil, []error{nil, spent, spent}, map[string]int{"GetCallerIdentity": 1, "GetSessionToken": 1}},
		"Role":    {"A code for a role is sent only once, because the validation does not assume that role.", mfa, []awstest.Option{awstest.WithRole(roles + "guarded")}, []error{nil, spent, spent}, map[string]int{"GetCallerIdentity": 1, "AssumeRole": 1}},
		"Wrong":   {"A wrong code has its own message.", v1alpha1.STSRequestParameters{SerialNumber: device, TokenCode: "000000"}, nil, []error{refused, spent, spent}, map[string]int{"GetCallerIdentity": 1, "GetSessionToken": 1}},
		"Device":  {"A wrong device has its own message.", v1alpha1.STSRequestParameters{SerialNumber: device + "2", TokenCode: "123456"}, nil, []error{refused, spent, spent}, map[string]int{"GetCallerIdentity": 1, "GetSessionToken": 1}},
		"BadRole": {"A wrong code for a role has its own message.", v1alpha1.STSRequestParameters{SerialNumber: device, TokenCode: "000000"}, []awstest.Option{awstest.WithRole(roles + "guarded")}, []error{refused, spent, spent}, map[string]int{"GetCallerIdentity": 1, "AssumeRole": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, asking(tc.asks), srv.URL(), tc.opts...)
			if err := c.Check(t.Context()); err != nil {
				t.Errorf("%s\nCheck(...): %s", tc.reason, err)
			}
			var got []error
			for range tc.want {
				_, err := c.Generate(t.Context())
				got = append(got, err)
				if err != nil && (strings.Contains(err.Error(), tc.asks.TokenCode) || strings.Contains(err.Error(), device)) {
					t.Errorf("%s\nThe error shows what was sent: %s", tc.reason, err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nGenerate(...): -want errors, +got errors:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.calls, srv.Counts()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	t.Run("Later", func(t *testing.T) {
		srv := start(t)
		srv.Inject(emulator.Fault{Call: "GetSessionToken", Code: "Throttling", Times: 2})
		c := client(t, asking(mfa), srv.URL())
		if _, err := c.Generate(t.Context()); provider.ClassOf(err) != provider.Throttled {
			t.Fatalf("Generate(...): got %v, want it throttled", err)
		}
		if _, err := c.Generate(t.Context()); err != nil {
			t.Errorf("a code that AWS has not checked must still work: %s", err)
		}
	})
}

func TestGenerateFails(t *testing.T) {
	cases := map[string]struct {
		reason string
		asks   v1alpha1.STSRequestParameters
		opts   []awstest.Option
		fault  *emulator.Fault
		want   *provider.Error
		calls  int // 0 means 1
	}{
		"Key":       {reason: "The error of an unknown key names the field.", opts: []awstest.Option{awstest.WithKey("other", canary)}, want: provider.NewError(provider.Denied, "spec.auth.secretRef.accessKeyIDSecretRef: AWS does not know the access key id")},
		"Secret":    {reason: "The error of a wrong secret key names the field.", opts: []awstest.Option{awstest.WithKey("test", canary)}, want: provider.NewError(provider.Denied, "spec.auth.secretRef.secretAccessKeySecretRef: the secret access key does not match the access key id, or the clock of the operator is wrong")},
		"NoRole":    {reason: "The error of a missing role names spec.role.", opts: []awstest.Option{awstest.WithRole(roles + "none")}, want: provider.NewError(provider.Denied, "spec.role: cannot assume role "+roles+"none: the caller is not allowed to assume the role; allow it in the caller's policy, and in the role's trust policy (principal, spec.externalID, spec.sessionTags)")},
		"Throttled": {reason: "The wait that AWS asks for is passed on.", fault: &emulator.Fault{Code: "Throttling", Message: canary, RetryAfter: 7 * time.Second}, want: &provider.Error{Class: provider.Throttled, Message: "AWS throttles the calls; retrying with back-off", RetryAfter: 7 * time.Second}},
		"Down":      {reason: "A server error is retried.", fault: &emulator.Fault{Status: 503}, want: provider.NewError(provider.Unavailable, "AWS returned status 503"), calls: 2},
		"Region":    {reason: "An inactive region has its own message.", fault: &emulator.Fault{Code: "RegionDisabledException", Status: 403, Message: canary}, want: provider.NewError(provider.Denied, "STS is not active in this region; activate it, or correct spec.region")},
		"Truncated": {reason: "A truncated answer is Unavailable.", fault: &emulator.Fault{Body: emulator.BodyTruncated}, want: provider.NewError(provider.Unavailable, "the response of AWS is incomplete or damaged")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			if tc.fault != nil {
				srv.Inject(*tc.fault)
			}
			c := client(t, asking(tc.asks), srv.URL(), tc.opts...)
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

// TestTooLong requests a longer session than the role allows. The spec does not show the role's limit.
func TestTooLong(t *testing.T) {
	srv := start(t)
	c := client(t, asking(v1alpha1.STSRequestParameters{SessionDuration: 10800}), srv.URL(), awstest.WithRole(roles+"deploy"))
	_, err := c.Generate(t.Context())
	want := provider.NewError(provider.Invalid, "spec.role: cannot assume role "+roles+"deploy: AWS rejects spec.requestParameters.sessionDuration, or another field of the request; the maximum is that of the role, or one hour if the caller is a role itself")
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("Generate(...): -want error, +got error:\n%s", diff)
	}
	if err := c.Check(t.Context()); err != nil {
		t.Errorf("the check of the role must pass: Check(...): %s", err)
	}
}

// operator lets a generator use the operator's own identity.
type operator struct{ awstest.Secrets }

func (operator) Ambient() error { return nil }

// TestAmbientRole uses a role as the operator's identity. AWS issues no session tokens to roles.
func TestAmbientRole(t *testing.T) {
	srv := start(t)
	out, err := sts.NewFromConfig(aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(srv.URL()), Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}).
		AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String(roles + "relay"), RoleSessionName: aws.String("operator")})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", *out.Credentials.AccessKeyId)
	t.Setenv("AWS_SECRET_ACCESS_KEY", *out.Credentials.SecretAccessKey)
	t.Setenv("AWS_SESSION_TOKEN", *out.Credentials.SessionToken)
	connect := func(ctx context.Context, g *v1alpha1.STSSessionToken, _ provider.Credentials) (provider.Generator, error) {
		g.Spec.Auth = nil
		return Connect(ctx, g, operator{})
	}
	c, err := awstest.Connect(t, &v1alpha1.STSSessionToken{}, connect, srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.(*Generator).Generate(t.Context())
	if diff := cmp.Diff(error(provider.NewError(provider.Denied, needsRole)), err); diff != "" {
		t.Errorf("Generate(...): -want error, +got error:\n%s", diff)
	}
	if diff := cmp.Diff(error(provider.NewError(provider.Invalid, needsRole)), c.(*Generator).Check(t.Context())); diff != "" {
		t.Errorf("Check(...): -want error, +got error:\n%s", diff)
	}

	withRole := func(ctx context.Context, g *v1alpha1.STSSessionToken, creds provider.Credentials) (provider.Generator, error) {
		g.Spec.Role = roles + "deploy"
		return connect(ctx, g, creds)
	}
	c, err = awstest.Connect(t, &v1alpha1.STSSessionToken{}, withRole, srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.(*Generator).Generate(t.Context()); err != nil {
		t.Errorf("the fix that the error names must work: Generate(...): %s", err)
	}
	if err := c.(*Generator).Check(t.Context()); err != nil {
		t.Errorf("Check(...): %s", err)
	}
}

// TestAnswers uses answers of other servers than AWS.
func TestAnswers(t *testing.T) {
	key := provider.NewError(provider.Unavailable, "the response of AWS has no access key; check spec.endpoint")
	noIdentity := provider.NewError(provider.Unavailable, "the response of AWS has no identity; check spec.endpoint")
	const begin, end = "<GetSessionTokenResponse><GetSessionTokenResult>", "</GetSessionTokenResult></GetSessionTokenResponse>"
	cases := map[string]struct {
		reason, body string
	}{
		"Nothing":  {"An answer without credentials is rejected.", begin + end},
		"Empty":    {"Empty credentials are rejected.", begin + "<Credentials></Credentials>" + end},
		"NoToken":  {"An access key without a session token is rejected.", begin + "<Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>" + canary + "</SecretAccessKey><Expiration>2026-01-02T03:04:05Z</Expiration></Credentials>" + end},
		"NoExpiry": {"An access key without an expiry is rejected.", begin + "<Credentials><AccessKeyId>a</AccessKeyId><SecretAccessKey>" + canary + "</SecretAccessKey><SessionToken>t</SessionToken></Credentials>" + end},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/xml")
				body := tc.body
				if err := r.ParseForm(); err == nil && r.Form.Get("Action") == "GetCallerIdentity" {
					body = strings.ReplaceAll(begin+end, "GetSessionToken", "GetCallerIdentity")
				}
				_, _ = w.Write([]byte(body)) // The client may have closed the connection.
			}))
			t.Cleanup(srv.Close)
			c := client(t, &v1alpha1.STSSessionToken{}, srv.URL)
			if _, err := c.Generate(t.Context()); !cmp.Equal(error(key), err) {
				t.Errorf("%s\nGenerate(...): -want error, +got error:\n%s", tc.reason, cmp.Diff(error(key), err))
			}
			if diff := cmp.Diff(error(noIdentity), c.Check(t.Context())); diff != "" {
				t.Errorf("Check(...): -want error, +got error:\n%s", diff)
			}
		})
	}
}

func TestConnectFails(t *testing.T) {
	field := func(name, text string) error {
		return provider.NewError(provider.Invalid, "spec.requestParameters.%s: %s", name, text)
	}
	const mine = "is the MFA device of a user, and cannot be used with spec.additionalRoles or a ServiceAccount in spec.auth; remove it"
	mfa := v1alpha1.STSRequestParameters{SerialNumber: device, TokenCode: "123456"}
	lasting := func(seconds int32) v1alpha1.STSRequestParameters {
		return v1alpha1.STSRequestParameters{SessionDuration: seconds}
	}
	chain := func(s *awstest.Store) { s.Role, s.AdditionalRoles = "r", []string{"a"} }
	token := func(s *awstest.Store) {
		s.Role, s.Auth = "r", &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Name: "shop"}}
	}
	same := func(*awstest.Store) {}
	cases := map[string]struct {
		reason   string
		asks     v1alpha1.STSRequestParameters
		rotation common.Duration
		change   awstest.Option
		want     error
	}{
		"Temporary": {"A temporary access key without a role is rejected.", v1alpha1.STSRequestParameters{}, "", func(s *awstest.Store) {
			s.Auth.SecretRef.SessionTokenSecretRef = &common.SecretKeySelector{Name: "aws", Key: "token"}
		}, provider.NewError(provider.Invalid, "spec.auth.secretRef.sessionTokenSecretRef: AWS creates no session tokens for a temporary access key; set spec.role, or name the access key of a user")},
		"Short":    {"A session of less than 15 minutes is rejected.", lasting(899), "", same, field("sessionDuration", "must be at least 900 seconds")},
		"Negative": {"A negative duration is rejected.", lasting(-1), "", same, field("sessionDuration", "must be at least 900 seconds")},
		"Long":     {"A session of more than 36 hours is rejected.", lasting(129601), "", same, field("sessionDuration", "must be at most 129600 seconds")},
		"LongRole": {"A session of more than 12 hours is rejected for a role.", lasting(43201), "", awstest.WithRole("r"), field("sessionDuration", "must be at most 43200 seconds with a role")},
		"LongToken": {"A session of more than 12 hours is rejected for a ServiceAccount, whose role can be in an annotation.", lasting(43201), "", func(s *awstest.Store) {
			token(s)
			s.Role = ""
		}, field("sessionDuration", "must be at most 43200 seconds with a role")},
		"LongChain": {"A session of more than one hour is rejected for chained roles.", lasting(3601), "", chain, field("sessionDuration", "must be at most 3600 seconds with spec.additionalRoles")},
		"NoCode":    {"A serial number without a token code is rejected.", v1alpha1.STSRequestParameters{SerialNumber: device}, "", same, field("tokenCode", "must be set with serialNumber")},
		"NoDevice":  {"A token code without a serial number is rejected.", v1alpha1.STSRequestParameters{TokenCode: "123456"}, "", same, field("serialNumber", "must be set with tokenCode")},
		"BadCode":   {"A token code without six digits is rejected.", v1alpha1.STSRequestParameters{SerialNumber: device, TokenCode: canary}, "", same, field("tokenCode", "must be the six digits that the MFA device shows")},
		"MFAChain":  {"An MFA device with chained roles is rejected.", mfa, "", chain, field("serialNumber", mine)},
		"MFAToken":  {"An MFA device with a ServiceAccount is rejected.", mfa, "", token, field("serialNumber", mine)},
		"Rotation":  {"A token code with a rotation interval is rejected.", mfa, "1h", same, provider.NewError(provider.Invalid, "spec.rotationInterval: spec.requestParameters.tokenCode works only once, so a rotation would fail; remove rotationInterval")},
		"Region":    {"A missing region is rejected.", v1alpha1.STSRequestParameters{}, "", func(s *awstest.Store) { s.Region = "" }, provider.NewError(provider.Invalid, "spec.region: required with spec.auth; set it, for example to eu-central-1")},
		"Roles":     {"additionalRoles without a role are rejected.", v1alpha1.STSRequestParameters{}, "", func(s *awstest.Store) { s.AdditionalRoles = []string{"a"} }, provider.NewError(provider.Invalid, "spec.role: required with additionalRoles, externalID, sessionTags, sessionTagsPolicy or transitiveTagKeys")},
		"Ambient":   {"The operator's identity cannot be used unless the operator allows it.", v1alpha1.STSRequestParameters{}, "", func(s *awstest.Store) { s.Auth = nil }, provider.NewError(provider.Invalid, "spec.auth: auth is not set")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := asking(tc.asks)
			g.Spec.RotationInterval = tc.rotation
			_, err := awstest.Connect(t, g, Connect, "https://sts.invalid", tc.change)
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Errorf("%s\nConnect(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCheck checks the credentials with which access keys are generated, with as few sessions as possible.
func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		opts   []awstest.Option
		calls  map[string]int
	}{
		"User": {"A user's access key needs one call.", nil, map[string]int{"GetCallerIdentity": 2}},
		"Role": {"The role is assumed once.", []awstest.Option{awstest.WithRole(roles + "deploy")}, map[string]int{"GetCallerIdentity": 2, "AssumeRole": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			c := client(t, &v1alpha1.STSSessionToken{}, srv.URL(), tc.opts...)
			for range 2 {
				if err := c.Check(t.Context()); err != nil {
					t.Errorf("%s\nCheck(...): %s", tc.reason, err)
				}
			}
			if diff := cmp.Diff(tc.calls, srv.Counts()); diff != "" {
				t.Errorf("%s\ncalls: -want, +got:\n%s", tc.reason, diff)
			}
			if err := c.Close(); err != nil {
				t.Errorf("Close(): %s", err)
			}
		})
	}
}

// TestDeadline stops when the caller's context ends.
func TestDeadline(t *testing.T) {
	for name, opts := range map[string][]awstest.Option{"User": nil, "Role": {awstest.WithRole(roles + "deploy")}} {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			defer srv.Inject(emulator.Fault{Hang: true})()
			c := client(t, &v1alpha1.STSSessionToken{}, srv.URL(), opts...)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := c.Generate(ctx)
			if provider.ClassOf(err) != provider.Unavailable || !strings.HasSuffix(err.Error(), "AWS did not answer in time") {
				t.Errorf("Generate(...): got %v", err)
			}
		})
	}
}
