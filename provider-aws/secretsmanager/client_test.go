package secretsmanager

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig"
	"github.com/direct-secrets/direct-secrets/provider-aws/awsconfig/awstest"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// canary is in every value of these tests, and must appear in no message.
const canary = "c4n4ry"

func arnOf(t testing.TB, c *Client, name string) string {
	t.Helper()
	out, err := sdk(c.config).DescribeSecret(t.Context(), &secretsmanager.DescribeSecretInput{SecretId: aws.String(name)})
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.ARN)
}

func TestVersion(t *testing.T) {
	const id = "4E1B0dbc-5f6a-4a52-8f7d-0f3a1c2b3d4e"
	cases := map[string]struct {
		reason    string
		version   string
		id, stage string
	}{
		"Current":   {"No version means the current one.", "", "", ""},
		"Stage":     {"A name is a staging label.", "AWSPREVIOUS", "", "AWSPREVIOUS"},
		"UUID":      {"A UUID is a version id.", id, id, ""},
		"Marked":    {"The prefix uuid/ marks a version id.", "uuid/" + id, id, ""},
		"MarkedAny": {"A version id with the prefix need not be a UUID.", "uuid/terraform-20260101000000000000000001", "terraform-20260101000000000000000001", ""},
		"Almost":    {"A text that is not a UUID is a staging label.", id + "0", "", id + "0"},
		"Number":    {"A staging label can be a number.", "17", "", "17"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gotID, gotStage := version(tc.version)
			if diff := cmp.Diff([]string{tc.id, tc.stage}, []string{aws.ToString(gotID), aws.ToString(gotStage)}); diff != "" {
				t.Errorf("%s\nversion(%q): -want, +got:\n%s", tc.reason, tc.version, diff)
			}
			if tc.id == "" {
				return
			}
			if again, _ := version(VersionName(tc.id)); aws.ToString(again) != tc.id {
				t.Errorf("The version of a value can be requested.\nversionName(%q): got %q", tc.id, VersionName(tc.id))
			}
		})
	}
}

func TestGet(t *testing.T) {
	srv := awstest.Start(t)
	old := srv.Put("app/db", []byte("old"), emulator.Tags(map[string]string{"team": "shop"}))
	current := srv.Put("app/db", []byte("new"))
	binary := srv.Put("app/binary", []byte{0, 0xff})
	arn := arnOf(t, client(t, srv), "app/db")
	cut := arn[:len(arn)-len("-aBc123")]

	cases := map[string]struct {
		reason string
		prefix string
		ref    provider.Ref
		want   provider.Value
	}{
		"Current":  {"Without a version the current one is read.", "", provider.Ref{Key: "app/db"}, provider.Value{Data: []byte("new"), Version: current}},
		"Previous": {"A version can be a staging label.", "", provider.Ref{Key: "app/db", Version: "AWSPREVIOUS"}, provider.Value{Data: []byte("old"), Version: old}},
		"ID":       {"A version can be a version id.", "", provider.Ref{Key: "app/db", Version: old}, provider.Value{Data: []byte("old"), Version: old}},
		"Marked":   {"A version id can have the prefix uuid/.", "", provider.Ref{Key: "app/db", Version: "uuid/" + old}, provider.Value{Data: []byte("old"), Version: old}},
		"Tags":     {"The metadata are the tags, whatever the version.", "", provider.Ref{Key: "app/db", Version: old, Metadata: true}, provider.Value{Data: []byte("old"), Version: old, Metadata: map[string]string{"team": "shop"}}},
		"NoTags":   {"No tags are empty metadata.", "", provider.Ref{Key: "app/binary", Metadata: true}, provider.Value{Data: []byte{0, 0xff}, Version: binary, Metadata: map[string]string{}}},
		"Prefix":   {"The prefix is added to names.", "app/", provider.Ref{Key: "db"}, provider.Value{Data: []byte("new"), Version: current}},
		"ARN":      {"No prefix is added to an ARN.", "app/", provider.Ref{Key: arn}, provider.Value{Data: []byte("new"), Version: current}},
		"CutARN":   {"An ARN can omit its random suffix.", "app/", provider.Ref{Key: cut}, provider.Value{Data: []byte("new"), Version: current}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Key = tc.ref.Key
			got, err := client(t, srv, awstest.WithPrefix(tc.prefix)).Get(t.Context(), tc.ref)
			if err != nil {
				t.Fatalf("%s\nGet(...): %s", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nGet(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGetCustomVersionID(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv)
	const token = "terraform-20260101000000000000000001"
	if _, err := sdk(c.config).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: aws.String("a"), SecretString: aws.String("v"), ClientRequestToken: aws.String(token)}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Get(t.Context(), provider.Ref{Key: "a"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Get(t.Context(), provider.Ref{Key: "a", Version: got.Version})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" || got.Version != "uuid/"+token {
		t.Errorf("The version of a value must read the same value, whatever its form: %q\n-first, +second:\n%s", got.Version, diff)
	}
}

// failing holds error answers to the read of one secret.
var failing = map[string]struct {
	reason string
	fault  emulator.Fault
	want   *provider.Error
}{
	"NotFound":   {"ResourceNotFoundException is NotFound.", emulator.Fault{Code: "ResourceNotFoundException", Message: canary}, provider.NewError(provider.NotFound, `secret "a": does not exist in region us-east-1`)},
	"Marked":     {"A secret in its recovery window is NotFound.", emulator.Fault{Code: "InvalidRequestException", Message: "You can't perform this operation on the secret because it was marked for deletion."}, provider.NewError(provider.NotFound, `secret "a": is scheduled for deletion in region us-east-1; restore it, or correct the key`)},
	"Scheduled":  {"Another text for a secret in its recovery window is NotFound, too.", emulator.Fault{Code: "InvalidRequestException", Message: "You can't create this secret because a secret with this name is already scheduled for deletion."}, provider.NewError(provider.NotFound, `secret "a": is scheduled for deletion in region us-east-1; restore it, or correct the key`)},
	"State":      {"Another invalid state of a secret is not NotFound.", emulator.Fault{Code: "InvalidRequestException", Message: canary}, provider.NewError(provider.Invalid, `secret "a": AWS rejects the request in the current state of the secret`)},
	"Parameter":  {"A rejected request is Invalid.", emulator.Fault{Code: "InvalidParameterException", Message: canary}, provider.NewError(provider.Invalid, `secret "a": AWS rejects the request as invalid; check the spec`)},
	"KMS":        {"The error of a failed decryption names KMS.", emulator.DecryptionFailed("a"), provider.NewError(provider.Denied, `secret "a": `+awsconfig.CannotDecrypt)},
	"KMSDenied":  {"The error of a denied KMS key names KMS.", emulator.Fault{Code: "AccessDeniedException", Message: "Access to KMS is not allowed"}, provider.NewError(provider.Denied, `secret "a": the caller is not allowed to use the KMS key of the secret; allow kms:Decrypt in a policy and in the key policy`)},
	"Denied":     {"The error names the user and the denied action.", emulator.Fault{Code: "AccessDeniedException", Message: "User: arn:aws:iam::000000000000:user/test is not authorized to perform: secretsmanager:GetSecretValue on resource: a because no identity-based policy allows the secretsmanager:GetSecretValue action"}, provider.NewError(provider.Denied, `secret "a": arn:aws:iam::000000000000:user/test is not allowed to perform secretsmanager:GetSecretValue; allow it in a policy`)},
	"Throttled":  {"Too many calls are Throttled.", emulator.Throttled(), provider.NewError(provider.Throttled, `secret "a": AWS throttles the calls; retrying with back-off`)},
	"Internal":   {"An internal error of AWS is Unavailable.", emulator.Fault{Code: "InternalServiceError", Message: canary}, provider.NewError(provider.Unavailable, `secret "a": AWS has an internal error`)},
	"NotInTable": {"An unknown error code is Unavailable.", emulator.Fault{Code: "SecretNotFoundException", Message: canary}, provider.NewError(provider.Unavailable, `secret "a": AWS returned the error SecretNotFoundException`)},
}

func TestErrors(t *testing.T) {
	for name, tc := range failing {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			srv.Put("a", []byte(canary))
			srv.Put("b", []byte("fine"))
			c := client(t, srv)

			tc.fault.Key, tc.fault.Call = "a", "GetSecretValue"
			removed := srv.Inject(tc.fault)
			_, err := c.Get(t.Context(), provider.Ref{Key: "a"})
			if diff := cmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("%s\nGet(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			removed()

			tc.fault.Call, tc.fault.Entry = "", true
			srv.Inject(tc.fault)
			got := c.GetBatch(t.Context(), []provider.Ref{{Key: "a"}, {Key: "b"}})
			if diff := cmp.Diff(error(tc.want), got[0].Err); diff != "" {
				t.Errorf("%s\nGetBatch(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if got[1].Err != nil || string(got[1].Value.Data) != "fine" {
				t.Errorf("a failed entry must not fail the others: %+v", got[1])
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		want   *provider.Error
		calls  int
	}{
		"TooMany":     {"The HTTP status is enough for Throttled, as a load balancer sends no code.", emulator.Fault{Status: http.StatusTooManyRequests, RetryAfter: 2 * time.Second}, &provider.Error{Class: provider.Throttled, RetryAfter: 2 * time.Second, Message: `secret "a": AWS throttles the calls; retrying with back-off`}, 1},
		"Throttled":   {"Throttling is retried within the call.", emulator.Throttled(), provider.NewError(provider.Throttled, `secret "a": AWS throttles the calls; retrying with back-off`), 3},
		"RetryAfter":  {"Throttling with a time to wait is not retried here: the caller waits, and delays its other calls.", emulator.Fault{Code: "ThrottlingException", RetryAfter: 2 * time.Second}, &provider.Error{Class: provider.Throttled, RetryAfter: 2 * time.Second, Message: `secret "a": AWS throttles the calls; retrying with back-off`}, 1},
		"Internal":    {"A status 500 is retried.", emulator.Fault{Status: http.StatusInternalServerError}, provider.NewError(provider.Unavailable, `secret "a": AWS returned status 500`), 3},
		"Unavailable": {"A status 503 is retried.", emulator.Fault{Status: http.StatusServiceUnavailable}, provider.NewError(provider.Unavailable, `secret "a": AWS returned status 503`), 3},
		"NotFound":    {"A 404 of a proxy is not NotFound.", emulator.Fault{Status: http.StatusNotFound}, provider.NewError(provider.Unavailable, `secret "a": AWS returned status 404`), 1},
		"Truncated":   {"A truncated answer is Unavailable.", emulator.Fault{Body: emulator.BodyTruncated}, provider.NewError(provider.Unavailable, `secret "a": the response of AWS is incomplete or damaged`), 1},
		"Aborted":     {"A closed connection is Unavailable.", emulator.Fault{Body: emulator.BodyAborted}, provider.NewError(provider.Unavailable, `secret "a": the response of AWS is incomplete or damaged`), 1},
		"Denied":      {"A denied call is not retried.", emulator.Fault{Code: "AccessDeniedException"}, provider.NewError(provider.Denied, `secret "a": access denied`), 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := awstest.Start(t)
			srv.Put("a", []byte(strings.Repeat(canary, 1000)))
			srv.Inject(tc.fault)
			_, err := client(t, srv, awstest.WithRetries(2)).Get(t.Context(), provider.Ref{Key: "a"})
			if diff := cmp.Diff(error(tc.want), err); diff != "" {
				t.Errorf("%s\nGet(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if got := srv.Count("GetSecretValue"); got != tc.calls {
				t.Errorf("%s\nGet(...): %d calls, want %d", tc.reason, got, tc.calls)
			}
			srv.ClearFaults()
			if _, err := client(t, srv).Get(t.Context(), provider.Ref{Key: "a"}); err != nil {
				t.Errorf("%s\nGet(...) afterwards: %s", tc.reason, err)
			}
		})
	}
}

func TestThrottledUntilDeadline(t *testing.T) {
	srv := awstest.Start(t)
	srv.Inject(emulator.Throttled())
	c := client(t, srv, awstest.WithRetries(100), func(s *awstest.Store) { s.RetrySettings.RetryInterval = "1h" })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Get(ctx, provider.Ref{Key: "a"})
	if got := provider.ClassOf(err); got != provider.Throttled {
		t.Errorf("a timeout during retries must report the cause of the retries: class %s, want %s: %v", got, provider.Throttled, err)
	}
}

func TestBadKeys(t *testing.T) {
	srv := awstest.Start(t)
	c := client(t, srv, awstest.WithPrefix("app/"))
	for reason, key := range map[string]string{
		"An empty key is rejected, because it would read the prefix.":                   "",
		"A key that is too long is rejected, because AWS would reject the whole batch.": strings.Repeat("k", awsconfig.MaxID),
	} {
		want := provider.NewError(provider.Invalid, "a key of %d characters is not valid in AWS", len(key))
		_, err := c.Get(t.Context(), provider.Ref{Key: key})
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Errorf("%s\nGet(...): -want error, +got error:\n%s", reason, diff)
		}
		got := c.GetBatch(t.Context(), []provider.Ref{{Key: key}})
		if diff := cmp.Diff([]provider.Result{{Err: want}}, got); diff != "" {
			t.Errorf("%s\nGetBatch(...): -want, +got:\n%s", reason, diff)
		}
	}
	if n := srv.Count(); n != 0 {
		t.Errorf("an invalid key must not cause a call: %d calls", n)
	}
}

func TestCheck(t *testing.T) {
	awstest.RunCheck(t, func(t testing.TB, srv *emulator.Server, opts ...awstest.Option) provider.Checker {
		return client(t, srv, opts...)
	})
}

func TestRoles(t *testing.T) {
	const role = "arn:aws:iam::000000000000:role/shop"
	srv := awstest.Start(t, emulator.WithRoles(emulator.Role{ARN: role, Principals: []string{"arn:aws:iam::000000000000:user/test"}}))
	t.Setenv("AWS_ENDPOINT_URL_STS", srv.URL())
	srv.Put("a", []byte("v"))
	as := func(arn string) awstest.Option { return func(s *awstest.Store) { s.Role = arn } }

	c := client(t, srv, as(role))
	for range 3 {
		if _, err := c.Get(t.Context(), provider.Ref{Key: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := srv.Count("AssumeRole"); n != 1 {
		t.Errorf("one login must serve all calls: %d logins", n)
	}
	srv.ExpireSessions()
	if _, err := c.Get(t.Context(), provider.Ref{Key: "a"}); err != nil || srv.Count("AssumeRole") != 2 {
		t.Errorf("a session that expired early must be replaced: %d logins, error %v", srv.Count("AssumeRole"), err)
	}

	denied := client(t, srv, as("arn:aws:iam::000000000000:role/other"))
	if err := denied.Check(t.Context()); provider.ClassOf(err) != provider.Denied {
		t.Errorf("a role that cannot be assumed must be a failed login: %v", err)
	}
	srv.Reset()
	for _, r := range denied.GetBatch(t.Context(), []provider.Ref{{Key: "a"}, {Key: "b"}}) {
		if provider.ClassOf(r.Err) != provider.Denied {
			t.Errorf("a failed login must fail every entry: %v", r.Err)
		}
	}
	if diff := cmp.Diff(map[string]int{"AssumeRole": 1}, srv.Counts()); diff != "" {
		t.Errorf("A failed login must not count as a denied batch.\ncalls: -want, +got:\n%s", diff)
	}
}

func TestCodesHaveText(t *testing.T) {
	for code, m := range codes {
		if m.Class == "" || m.Text == "" {
			t.Errorf("%s: class %q, text %q", code, m.Class, m.Text)
		}
	}
	if awsconfig.IsAccessDenied("DecryptionFailure") {
		t.Error("a KMS error must not be reported as a missing permission for Secrets Manager")
	}
}
