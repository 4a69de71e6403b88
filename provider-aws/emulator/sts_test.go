package emulator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const (
	roleA = "arn:aws:iam::111111111111:role/a"
	roleB = "arn:aws:iam::222222222222:role/path/b"

	userTest     = "arn:aws:iam::000000000000:user/test"
	deniedAssume = "AccessDenied: User: " + userTest + " is not authorized to perform: sts:AssumeRole on resource: "
)

// assume calls AssumeRole and returns a client with the session's credentials.
func assume(ctx context.Context, t *testing.T, srv *emulator.Server, from aws.CredentialsProvider, in *sts.AssumeRoleInput) (aws.CredentialsProvider, string) {
	t.Helper()
	out, err := sts.NewFromConfig(awsConfig(t, srv, from)).AssumeRole(ctx, in)
	if err != nil {
		return nil, apiError(err)
	}
	c := out.Credentials
	return static(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken), *out.AssumedRoleUser.Arn
}

func sessionTag(k, v string) types.Tag { return types.Tag{Key: &k, Value: &v} }

func TestAssumeRole(t *testing.T) {
	trusted := emulator.Role{ARN: roleA, Principals: []string{userTest}}
	in := func(change func(*sts.AssumeRoleInput)) *sts.AssumeRoleInput {
		i := &sts.AssumeRoleInput{RoleArn: aws.String(roleA), RoleSessionName: aws.String("session")}
		if change != nil {
			change(i)
		}
		return i
	}
	cases := map[string]struct {
		reason string
		roles  []emulator.Role
		in     *sts.AssumeRoleInput
		want   string
	}{
		"Trusted":    {"a trusted user gets a session", []emulator.Role{trusted}, in(nil), "arn:aws:sts::111111111111:assumed-role/a/session"},
		"Unknown":    {"an unknown role is denied like a role that does not trust the caller", nil, in(nil), deniedAssume + roleA},
		"NoTrust":    {"a role without principals is denied", []emulator.Role{{ARN: roleA}}, in(nil), deniedAssume + roleA},
		"Other":      {"a role that trusts another user is denied", []emulator.Role{{ARN: roleA, Principals: []string{userTest + "2"}}}, in(nil), deniedAssume + roleA},
		"ExternalID": {"the right external id is accepted", []emulator.Role{{ARN: roleA, ExternalID: "x"}}, in(func(i *sts.AssumeRoleInput) { i.ExternalId = aws.String("x") }), "arn:aws:sts::111111111111:assumed-role/a/session"},
		"WrongID":    {"another external id is denied for every caller", []emulator.Role{{ARN: roleA, ExternalID: "x", Principals: []string{"*"}}}, in(func(i *sts.AssumeRoleInput) { i.ExternalId = aws.String("y2") }), deniedAssume + roleA},
		"Name":       {"an invalid session name is rejected", []emulator.Role{trusted}, in(func(i *sts.AssumeRoleInput) { i.RoleSessionName = aws.String("a b") }), "ValidationError: 1 validation error detected: Value at 'roleSessionName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\\w+=,.@-]*"},
		"TooLong":    {"a session that is longer than the role allows is rejected", []emulator.Role{trusted}, in(func(i *sts.AssumeRoleInput) { i.DurationSeconds = aws.Int32(7200) }), "ValidationError: The requested DurationSeconds exceeds the MaxSessionDuration set for this role."},
		"TooShort":   {"a session of less than 15 minutes is rejected", []emulator.Role{trusted}, in(func(i *sts.AssumeRoleInput) { i.DurationSeconds = aws.Int32(60) }), "ValidationError: 1 validation error detected: Value at 'durationSeconds' failed to satisfy constraint: Member must have value greater than or equal to 900"},
		"Transitive": {"a transitive key without a tag is rejected", []emulator.Role{trusted}, in(func(i *sts.AssumeRoleInput) { i.TransitiveTagKeys = []string{"k"} }), "InvalidParameterValue: The specified transitive tag key must be included in the requested tags."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, emulator.WithRoles(tc.roles...))
			if _, got := assume(t.Context(), t, srv, static("test", "test", ""), tc.in); got != tc.want {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, cmp.Diff(tc.want, got))
			}
		})
	}
}

func TestRoleChain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := start(t, emulator.WithRoles(
		emulator.Role{ARN: roleA, Principals: []string{userTest}},
		emulator.Role{ARN: roleB, Principals: []string{roleA}, ExternalID: "x", MaxSessionDuration: 4 * time.Hour},
	))
	srv.Put("db", []byte("v"))
	user := static("test", "test", "")

	_, direct := assume(ctx, t, srv, user, &sts.AssumeRoleInput{RoleArn: aws.String(roleB), RoleSessionName: aws.String("two"), ExternalId: aws.String("x")})
	a, _ := assume(ctx, t, srv, user, &sts.AssumeRoleInput{
		RoleArn: aws.String(roleA), RoleSessionName: aws.String("one"),
		Tags: []types.Tag{sessionTag("team", "shop"), sessionTag("only", "here")}, TransitiveTagKeys: []string{"team"},
	})
	second := &sts.AssumeRoleInput{RoleArn: aws.String(roleB), RoleSessionName: aws.String("two"), ExternalId: aws.String("x"), Tags: []types.Tag{sessionTag("env", "prod")}}
	b, callerIdentity := assume(ctx, t, srv, a, second)

	long := *second
	long.DurationSeconds = aws.Int32(7200)
	_, tooLong := assume(ctx, t, srv, a, &long)
	override := *second
	override.Tags = []types.Tag{sessionTag("team", "other")}
	_, conflict := assume(ctx, t, srv, a, &override)

	want := []string{
		deniedAssume + roleB, "arn:aws:sts::222222222222:assumed-role/b/two", "arn:aws:sts::222222222222:assumed-role/b/two", "v",
		"ValidationError: The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining",
		"InvalidParameterValue: One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the calling session.",
	}
	cfg := awsConfig(t, srv, b)
	got := []string{direct, callerIdentity, whoami(ctx, sts.NewFromConfig(cfg)), current(ctx, sm.NewFromConfig(cfg), "db"), tooLong, conflict}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a role is reached through the role that it trusts: -want, +got:\n%s", diff)
	}

	sessions := []emulator.Session{
		{RoleARN: roleA, Name: "one", AssumedRoleARN: "arn:aws:sts::111111111111:assumed-role/a/one", Chain: []string{roleA},
			Tags: map[string]string{"team": "shop", "only": "here"}, TransitiveTagKeys: []string{"team"}, SourceAccessKeyID: "test"},
		{RoleARN: roleB, Name: "two", AssumedRoleARN: callerIdentity, Chain: []string{roleA, roleB}, ExternalID: "x",
			Tags: map[string]string{"team": "shop", "env": "prod"}, TransitiveTagKeys: []string{"team"}, SourceAccessKeyID: srv.Sessions()[0].AccessKeyID},
	}
	if diff := cmp.Diff(sessions, srv.Sessions(), cmpopts.IgnoreFields(emulator.Session{}, "AccessKeyID", "Issued", "Expires")); diff != "" {
		t.Errorf("sessions are recorded with their chain, and transitive tags are inherited: -want, +got:\n%s", diff)
	}
}

func TestSessionCredentials(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clk := &clock{}
	srv := start(t, emulator.WithClock(clk.now), emulator.WithRoles(emulator.Role{
		ARN: roleA, Principals: []string{"*"}, Deny: []emulator.Deny{{Action: "secretsmanager:GetSecretValue", Secret: "web/*"}},
	}))
	srv.Put("db", []byte("v"))
	srv.Put("web/db", []byte("v"))
	in := &sts.AssumeRoleInput{RoleArn: aws.String(roleA), RoleSessionName: aws.String("session")}
	session, callerIdentity := assume(ctx, t, srv, static("test", "test", ""), in)
	creds, err := session.Retrieve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	client := func(p aws.CredentialsProvider) *sm.Client { return sm.NewFromConfig(awsConfig(t, srv, p)) }

	got := []string{
		current(ctx, client(session), "db"),
		current(ctx, client(session), "web/db"),
		current(ctx, client(static(creds.AccessKeyID, creds.SecretAccessKey, "")), "db"),
		current(ctx, client(static(creds.AccessKeyID, creds.SecretAccessKey, "other")), "db"),
		current(ctx, client(static(creds.AccessKeyID, "other", creds.SessionToken)), "db"),
	}
	clk.advance(time.Hour)
	got = append(got, current(ctx, client(session), "db"), whoami(ctx, sts.NewFromConfig(awsConfig(t, srv, session))))
	again, _ := assume(ctx, t, srv, static("test", "test", ""), in)
	got = append(got, current(ctx, client(again), "db"))
	srv.ExpireSessions()
	got = append(got, current(ctx, client(again), "db"))

	invalid := "UnrecognizedClientException: The security token included in the request is invalid."
	expired := "ExpiredTokenException: The security token included in the request is expired"
	want := []string{
		"v",
		"AccessDeniedException: User: " + callerIdentity + " is not authorized to perform: secretsmanager:GetSecretValue on resource: web/db " +
			"because no identity-based policy allows the secretsmanager:GetSecretValue action",
		invalid, invalid, "InvalidSignatureException: " + badSignature,
		expired, "ExpiredToken: The security token included in the request is expired", "v", expired,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("session credentials need their token, obey the role, and expire: -want, +got:\n%s", diff)
	}
}

func TestWebIdentity(t *testing.T) {
	t.Parallel()
	clk := &clock{}
	inAnHour := clk.now().Add(time.Hour)
	reader := emulator.Role{ARN: roleA, WebIdentities: []emulator.WebIdentity{{Issuer: "https://issuer", Subject: "system:serviceaccount:shop:*", Audience: "sts.amazonaws.com"}}}
	good := emulator.NewToken("https://issuer", "system:serviceaccount:shop:app", "sts.amazonaws.com", inAnHour)
	const refused = "AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity"
	cases := map[string]struct {
		reason string
		token  string
		opts   []emulator.Option
		want   string
	}{
		"Admitted": {"a token with the claims that the role requires is accepted", good, nil, ""},
		"Subject":  {"the role rejects another subject", emulator.NewToken("https://issuer", "system:serviceaccount:web:app", "sts.amazonaws.com", inAnHour), nil, refused},
		"Issuer":   {"the role rejects another issuer", emulator.NewToken("https://other", "system:serviceaccount:shop:app", "sts.amazonaws.com", inAnHour), nil, refused},
		"Audience": {"the identity provider rejects another audience", emulator.NewToken("https://issuer", "system:serviceaccount:shop:app", "vault", inAnHour), nil, "InvalidIdentityToken: Incorrect token audience"},
		"Expired":  {"an expired token is rejected", emulator.NewToken("https://issuer", "system:serviceaccount:shop:app", "sts.amazonaws.com", clk.now()), nil, "ExpiredTokenException: Token expired: current date/time 1767268800 must be before the expiration date/time 1767268800"},
		"NoToken":  {"a text that is not a JWT is rejected", "junk", nil, "InvalidIdentityToken: The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)"},
		"Verifier": {"an error of the verifier rejects the token", good, []emulator.Option{emulator.WithTokenVerifier(func(string) error { return errors.New("boom") })}, "InvalidIdentityToken: The signature of the ID Token could not be verified."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, append(tc.opts, emulator.WithClock(clk.now), emulator.WithRoles(reader))...)
			_, err := sts.NewFromConfig(awsConfig(t, srv, aws.AnonymousCredentials{})).AssumeRoleWithWebIdentity(t.Context(), &sts.AssumeRoleWithWebIdentityInput{
				RoleArn: aws.String(roleA), RoleSessionName: aws.String("web"), WebIdentityToken: &tc.token,
			})
			if diff := cmp.Diff(tc.want, apiError(err)); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWebIdentityProvider(t *testing.T) {
	t.Parallel()
	srv := start(t, emulator.WithRoles(emulator.Role{ARN: roleA, WebIdentities: []emulator.WebIdentity{{Subject: "me"}}}))
	srv.Put("db", []byte("v"))
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(emulator.NewToken("iss", "me", "aud", time.Now().Add(time.Hour))), 0o600); err != nil {
		t.Fatal(err)
	}
	provider := stscreds.NewWebIdentityRoleProvider(
		sts.NewFromConfig(awsConfig(t, srv, aws.AnonymousCredentials{})), roleA, stscreds.IdentityTokenFile(file),
		func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = "pod" })
	cfg := awsConfig(t, srv, aws.NewCredentialsCache(provider))
	want := []string{"v", "arn:aws:sts::111111111111:assumed-role/a/pod"}
	got := []string{current(t.Context(), sm.NewFromConfig(cfg), "db"), whoami(t.Context(), sts.NewFromConfig(cfg))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the SDK's own provider logs in and reads: -want, +got:\n%s", diff)
	}
	s := srv.Sessions()[0]
	if diff := cmp.Diff([]string{"me", "aud"}, []string{s.Subject, s.Audience}); diff != "" {
		t.Errorf("the session knows its web identity: -want, +got:\n%s", diff)
	}
}
