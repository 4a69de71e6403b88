package emulator_test

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const callerIdentity = "Action=GetCallerIdentity&Version=2011-06-15"

func TestSignatures(t *testing.T) {
	header := func(key, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(key, value) }
	}
	sent := func(path string) func(*http.Request) { return func(r *http.Request) { r.URL.Path = path } }
	srv := start(t)
	run(t, srv, []step{
		{call: sts, body: callerIdentity, want: "<Arn>" + userTest},
		{call: sts, body: callerIdentity, path: "/a/", change: sent("/./b/../a/"), want: "200"},
		{call: sts, body: callerIdentity, path: "/a", change: sent("/a/"), want: "SignatureDoesNotMatch"},
		{call: sts, body: callerIdentity, service: "ssm", want: "SignatureDoesNotMatch"},
		{call: sts, body: callerIdentity, before: time.Hour, want: "Signature expired"},
		{call: sts, body: callerIdentity, key: aws.Credentials{SessionToken: "x"}, want: "InvalidClientTokenId"},
		{call: sts, body: callerIdentity, change: header("Authorization", ""), want: "<Code>MissingAuthenticationToken<"},
		{call: sts, body: callerIdentity, change: header("Authorization", "AWS4-HMAC-SHA256 Credential=////, SignedHeaders=;, Signature=,"), want: "IncompleteSignature"},
		{call: "secretsmanager.ListSecrets", body: "{}", change: header("Authorization", ""), want: `"MissingAuthenticationTokenException"`},
		{call: "ecr-public.GetAuthorizationToken", body: "{}", region: "eu-central-1", want: "valid region"},
		{call: sts, body: "Action=GetFederationToken&Version=2011-06-15", want: "InvalidAction"},
	})
	srv.RemoveCredential("test")
	run(t, srv, []step{{call: sts, body: callerIdentity, want: "InvalidClientTokenId"}})
}

// assume calls AssumeRole, and returns the credentials of the session.
func assume(t *testing.T, srv *emulator.Server, key aws.Credentials, form string) aws.Credentials {
	t.Helper()
	got := step{call: sts, body: "Action=AssumeRole&Version=2011-06-15&" + form, key: key}.ask(t, srv)
	m := regexp.MustCompile(`(?s)<AccessKeyId>(.*)</AccessKeyId>.*<SecretAccessKey>(.*)</SecretAccessKey>.*<SessionToken>(.*)</SessionToken>`).FindStringSubmatch(got)
	if m == nil {
		t.Fatalf("AssumeRole: %s", got)
	}
	return aws.Credentials{AccessKeyID: m[1], SecretAccessKey: m[2], SessionToken: m[3]}
}

func TestRoleChain(t *testing.T) {
	srv := start(t, emulator.WithRoles(
		emulator.Role{ARN: roleA, Principals: []string{userTest}},
		emulator.Role{ARN: roleB, Principals: []string{roleA}, ExternalID: "x", MaxSessionDuration: 4 * time.Hour},
	))
	tag := func(n, k, v string) string {
		return "&Tags.member." + n + ".Key=" + k + "&Tags.member." + n + ".Value=" + v
	}
	a := assume(t, srv, aws.Credentials{}, "RoleSessionName=one&RoleArn="+roleA+tag("1", "team", "shop")+tag("2", "only", "here")+"&TransitiveTagKeys.member.1=team")
	const form = "Action=AssumeRole&Version=2011-06-15&RoleSessionName=two&RoleArn="
	second := "RoleSessionName=two&ExternalId=x&RoleArn=" + roleB
	assume(t, srv, a, second+tag("1", "env", "prod"))
	run(t, srv, []step{
		{call: sts, body: form + roleB + "&ExternalId=x", want: "AccessDenied"},
		{call: sts, body: form + roleB + "&ExternalId=x&DurationSeconds=7200", key: a, want: "1 hour session limit"},
		{call: sts, body: form + roleB + "&ExternalId=x" + tag("1", "team", "other"), key: a, want: "conflicts with a transitive tag key"},
		{call: sts, body: form + roleA + "&DurationSeconds=899", want: "greater than or equal to 900"},
		{call: sts, body: "Action=AssumeRole&Version=2011-06-15&RoleSessionName=a%20b&RoleArn=" + roleA, want: "roleSessionName"},
		{call: sts, body: "Action=GetSessionToken&Version=2011-06-15&DurationSeconds=899", want: "greater than or equal to 900"},
		{call: sts, body: "Action=GetSessionToken&Version=2011-06-15&DurationSeconds=129601", want: "less than or equal to 129600"},
		{call: sts, body: "Action=GetSessionToken&Version=2011-06-15", key: a, want: "Cannot call GetSessionToken with session credentials"},
	})
	want := []emulator.Session{
		{RoleARN: roleA, Name: "one", AssumedRoleARN: "arn:aws:sts::111111111111:assumed-role/a/one", Chain: []string{roleA},
			Tags: map[string]string{"team": "shop", "only": "here"}, TransitiveTagKeys: []string{"team"}, SourceAccessKeyID: "test"},
		{RoleARN: roleB, Name: "two", AssumedRoleARN: "arn:aws:sts::222222222222:assumed-role/b/two", Chain: []string{roleA, roleB}, ExternalID: "x",
			Tags: map[string]string{"team": "shop", "env": "prod"}, TransitiveTagKeys: []string{"team"}, SourceAccessKeyID: a.AccessKeyID},
	}
	if diff := cmp.Diff(want, srv.Sessions(), cmpopts.IgnoreFields(emulator.Session{}, "AccessKeyID", "Issued", "Expires")); diff != "" {
		t.Errorf("sessions are recorded with their chain, and transitive tags are inherited: -want, +got:\n%s", diff)
	}
	srv.AddRole(emulator.Role{ARN: roleA, Principals: []string{userTest}, MFA: true})
	srv.AddRole(emulator.Role{ARN: roleB, ExternalID: "x"})
	run(t, srv, []step{{call: sts, body: form + roleA, want: "AccessDenied"}, {call: sts, body: form + roleB + "&ExternalId=x", want: "200"}})
}

func TestWebIdentity(t *testing.T) {
	srv := start(t,
		emulator.WithRoles(emulator.Role{ARN: roleA, WebIdentities: []emulator.WebIdentity{{Issuer: "i", Subject: "s:*", Audience: "a"}}}),
		emulator.WithTokenVerifier(func(token string) error {
			if token == emulator.NewToken("i", "s:forged", "a", time.Unix(1<<33, 0)) {
				return errors.New("forged")
			}
			return nil
		}))
	token := func(issuer, subject string) string {
		return url.QueryEscape(emulator.NewToken(issuer, subject, "a", time.Unix(1<<33, 0)))
	}
	form := "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleSessionName=web&RoleArn=" + roleA + "&WebIdentityToken="
	run(t, srv, []step{
		{call: sts, body: form + token("i", "s:app"), want: "assumed-role/a/web"},
		{call: sts, body: form + token("other", "s:app"), want: "AccessDenied"},
		{call: sts, body: form + token("i", "s:forged"), want: "signature of the ID Token could not be verified"},
		{call: sts, body: form + "junk", want: "not a valid JWT"},
	})
}
