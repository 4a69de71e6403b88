package emulator_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const device = "arn:aws:iam::000000000000:mfa/test"

// sessionToken calls GetSessionToken, and returns the credentials or the error.
func sessionToken(ctx context.Context, t *testing.T, srv *emulator.Server, from aws.CredentialsProvider, in *sts.GetSessionTokenInput) (aws.CredentialsProvider, string) {
	t.Helper()
	out, err := sts.NewFromConfig(awsConfig(t, srv, from)).GetSessionToken(ctx, in)
	if err != nil {
		return nil, apiError(err)
	}
	c := out.Credentials
	return static(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken), ""
}

func TestGetSessionToken(t *testing.T) {
	const (
		tooShort = "ValidationError: 1 validation error detected: Value at 'durationSeconds' failed to satisfy constraint: Member must have value greater than or equal to 900"
		tooLong  = "ValidationError: 1 validation error detected: Value at 'durationSeconds' failed to satisfy constraint: Member must have value less than or equal to 129600"
		badCode  = "AccessDenied: MultiFactorAuthentication failed with invalid MFA one time pass code. "
		badMFA   = "AccessDenied: MultiFactorAuthentication failed, unable to validate MFA code.  Please verify your MFA serial number is valid and associated with this user."
	)
	cases := map[string]struct {
		reason string
		in     sts.GetSessionTokenInput
		lasts  time.Duration
		want   string
	}{
		"Default":  {"a session lasts twelve hours by default", sts.GetSessionTokenInput{}, 12 * time.Hour, ""},
		"Shortest": {"a session can last fifteen minutes", sts.GetSessionTokenInput{DurationSeconds: aws.Int32(900)}, 15 * time.Minute, ""},
		"Longest":  {"a session can last thirty-six hours", sts.GetSessionTokenInput{DurationSeconds: aws.Int32(129600)}, 36 * time.Hour, ""},
		"Short":    {"a shorter session is rejected", sts.GetSessionTokenInput{DurationSeconds: aws.Int32(899)}, 0, tooShort},
		"Long":     {"a longer session is rejected", sts.GetSessionTokenInput{DurationSeconds: aws.Int32(129601)}, 0, tooLong},
		"MFA":      {"the user's device is accepted", sts.GetSessionTokenInput{SerialNumber: aws.String(device), TokenCode: aws.String("123456")}, 12 * time.Hour, ""},
		"Code":     {"a wrong code is rejected", sts.GetSessionTokenInput{SerialNumber: aws.String(device), TokenCode: aws.String("000000")}, 0, badCode},
		"Device":   {"another device is rejected", sts.GetSessionTokenInput{SerialNumber: aws.String("other-device"), TokenCode: aws.String("123456")}, 0, badMFA},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, emulator.WithCredentials(emulator.Credential{AccessKeyID: "test", SecretAccessKey: "test", MFASerial: device, MFACodes: []string{"123456"}}))
			_, got := sessionToken(t.Context(), t, srv, static("test", "test", ""), &tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if tc.want != "" {
				return
			}
			s := srv.Sessions()[0]
			if diff := cmp.Diff([]any{tc.lasts, "test", ""}, []any{s.Expires.Sub(s.Issued), s.SourceAccessKeyID, s.RoleARN}); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUserSession checks what the session of a user is allowed to do.
func TestUserSession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clk := &clock{}
	srv := start(t, emulator.WithClock(clk.now),
		emulator.WithCredentials(emulator.Credential{
			AccessKeyID: "test", SecretAccessKey: "test", Deny: []emulator.Deny{{Action: "secretsmanager:*", Secret: "web/*"}}, MFASerial: device, MFACodes: []string{"1", "2"},
		}),
		emulator.WithRoles(
			emulator.Role{ARN: roleA, Principals: []string{userTest}, MaxSessionDuration: 2 * time.Hour},
			emulator.Role{ARN: roleB, Principals: []string{userTest}, MFA: true},
		))
	srv.Put("db", []byte("v"))
	srv.Put("web/db", []byte("v"))
	user := static("test", "test", "")
	session, _ := sessionToken(ctx, t, srv, user, &sts.GetSessionTokenInput{})
	role, callerIdentity := assume(ctx, t, srv, session, &sts.AssumeRoleInput{RoleArn: aws.String(roleA), RoleSessionName: aws.String("session"), DurationSeconds: aws.Int32(7200)})
	_, again := sessionToken(ctx, t, srv, session, &sts.GetSessionTokenInput{})
	_, ofRole := sessionToken(ctx, t, srv, role, &sts.GetSessionTokenInput{})
	guarded := func(serial, code *string) string {
		_, got := assume(ctx, t, srv, user, &sts.AssumeRoleInput{RoleArn: aws.String(roleB), RoleSessionName: aws.String("session"), SerialNumber: serial, TokenCode: code})
		return got
	}
	client := sm.NewFromConfig(awsConfig(t, srv, session))
	got := []string{
		whoami(ctx, sts.NewFromConfig(awsConfig(t, srv, session))), current(ctx, client, "db"), current(ctx, client, "web/db"), callerIdentity, again, ofRole,
		guarded(nil, nil), guarded(aws.String(device), aws.String("1")), guarded(aws.String(device), aws.String("1")), guarded(aws.String(device), aws.String("2")),
	}
	clk.advance(12 * time.Hour)
	got = append(got, current(ctx, client, "db"))

	const refused, assumed = "AccessDenied: Cannot call GetSessionToken with session credentials", "arn:aws:sts::222222222222:assumed-role/b/session"
	want := []string{
		userTest, "v",
		"AccessDeniedException: User: " + userTest + " is not authorized to perform: secretsmanager:GetSecretValue on resource: web/db " +
			"because no identity-based policy allows the secretsmanager:GetSecretValue action",
		"arn:aws:sts::111111111111:assumed-role/a/session", refused, refused,
		"AccessDenied: User: " + userTest + " is not authorized to perform: sts:AssumeRole", assumed,
		"AccessDenied: MultiFactorAuthentication failed with invalid MFA one time pass code. ", assumed,
		"ExpiredTokenException: The security token included in the request is expired",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a user's session may do what the user may, save to open another one: -want, +got:\n%s", diff)
	}
}
