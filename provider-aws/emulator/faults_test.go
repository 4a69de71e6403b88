package emulator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// status returns the HTTP status and the Retry-After header of a failed call.
func status(err error) string {
	var re *awshttp.ResponseError
	if !errors.As(err, &re) {
		return fmt.Sprint(err)
	}
	return strings.TrimSpace(fmt.Sprint(re.HTTPStatusCode(), " ", re.Response.Header.Get("Retry-After")))
}

func TestErrorFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  emulator.Fault
		code   string
		status string
	}{
		"Throttled":  {"the service throttles with HTTP 400", emulator.Throttled(), "ThrottlingException: Rate exceeded", "400"},
		"RetryAfter": {"an error can have a Retry-After", emulator.Fault{Status: 429, Code: "TooManyRequestsException", Message: "later", RetryAfter: 1500 * time.Millisecond}, "TooManyRequestsException: later", "429 2"},
		"Internal":   {"internal errors are HTTP 500", emulator.Fault{Code: "InternalServiceError", Message: "boom"}, "InternalServiceError: boom", "500"},
		"KMS":        {"a key that cannot be used", emulator.DecryptionFailed("db"), "DecryptionFailure: Secrets Manager can't decrypt the protected secret text using the provided KMS key.", "400"},
		"Raw429":     {"a bare status has no code", emulator.Fault{Status: 429}, "", "429"},
		"Raw503":     {"a bare status can carry Retry-After", emulator.Fault{Status: 503, RetryAfter: time.Minute}, "", "503 60"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t)
			srv.Put("db", []byte("v"))
			c := secretsClient(t, srv)
			remove := srv.Inject(tc.fault)
			_, err := c.GetSecretValue(t.Context(), &sm.GetSecretValueInput{SecretId: aws.String("db")})
			if tc.code != "" {
				if diff := cmp.Diff(tc.code, apiError(err)); diff != "" {
					t.Errorf("\n%s\ncode: -want, +got:\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(tc.status, status(err)); diff != "" {
				t.Errorf("\n%s\nstatus: -want, +got:\n%s", tc.reason, diff)
			}
			remove()
			remove()
			if diff := cmp.Diff("v", current(t.Context(), c, "db")); diff != "" {
				t.Errorf("a removed fault strikes no more: -want, +got:\n%s", diff)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	denied := emulator.Fault{Code: "AccessDeniedException", Message: "no"}
	with := func(f emulator.Fault, change func(*emulator.Fault)) emulator.Fault { change(&f); return f }
	runScripts(t, map[string]scriptCase{
		"BySecret": {
			reason: "a fault for one secret applies by name and by ARN, and to no other secret",
			run: func(ctx context.Context, t *testing.T, srv *emulator.Server, c *sm.Client) []string {
				out, err := c.CreateSecret(ctx, &sm.CreateSecretInput{Name: aws.String("shop/db"), SecretString: aws.String("v")})
				if err != nil {
					t.Fatal(err)
				}
				srv.Put("web/db", []byte("w"))
				srv.Inject(with(denied, func(f *emulator.Fault) { f.Key = "shop/*" }))
				return []string{current(ctx, c, "shop/db"), current(ctx, c, *out.ARN), current(ctx, c, (*out.ARN)[:len(*out.ARN)-7]), current(ctx, c, "web/db")}
			},
			want: []string{"AccessDeniedException: no", "AccessDeniedException: no", "AccessDeniedException: no", "w"},
		},
		"ByOperation": {
			reason: "a fault for one operation does not affect the others",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				srv.Inject(with(denied, func(f *emulator.Fault) { f.Call = "BatchGetSecretValue" }))
				return append([]string{current(ctx, c, "db")}, batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: []string{"db"}})...)
			},
			want: []string{"v", "AccessDeniedException: no"},
		},
		"ByAccessKey": {
			reason: "a fault for one access key does not affect other callers",
			run: func(ctx context.Context, t *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				srv.AddCredential(emulator.Credential{AccessKeyID: "other", SecretAccessKey: "pass"})
				srv.Inject(with(denied, func(f *emulator.Fault) { f.AccessKeyID = "other" }))
				return []string{current(ctx, c, "db"), current(ctx, sm.NewFromConfig(awsConfig(t, srv, static("other", "pass", ""))), "db")}
			},
			want: []string{"v", "AccessDeniedException: no"},
		},
		"Times": {
			reason: "a fault applies Times times, and then the next one does",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				srv.Inject(with(denied, func(f *emulator.Fault) { f.Times = 2 }))
				srv.Inject(with(emulator.Throttled(), func(f *emulator.Fault) { f.Times = 1 }))
				got := []string{current(ctx, c, "db"), current(ctx, c, "db"), current(ctx, c, "db"), current(ctx, c, "db")}
				return append(got, fmt.Sprint(srv.Count("GetSecretValue")))
			},
			want: []string{"AccessDeniedException: no", "AccessDeniedException: no", "ThrottlingException: Rate exceeded", "v", "4"},
		},
		"Entries": {
			reason: "a fault of an entry does not affect the rest of the batch, nor single reads",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				for _, n := range numbered(3) {
					srv.Put(n, []byte("v"))
				}
				srv.Inject(with(denied, func(f *emulator.Fault) { f.Key, f.Entry = "s00", true }))
				srv.Inject(with(emulator.DecryptionFailed("s02"), func(f *emulator.Fault) { f.Entry, f.Times = true, 1 }))
				got := append(batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: numbered(3)}), current(ctx, c, "s00"))
				return append(got, batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: []string{"s02"}})...)
			},
			want: []string{
				"s01=v", "s00: AccessDeniedException: no",
				"s02: DecryptionFailure: Secrets Manager can't decrypt the protected secret text using the provided KMS key.", "|",
				"v", "s02=v", "|",
			},
		},
		"Pages": {
			reason: "a page can end early: with the rest on the next page, with the rest lost, or as if it were the last one",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				for _, n := range numbered(3) {
					srv.Put(n, []byte("v"))
				}
				var got []string
				for _, how := range []emulator.PageFault{emulator.PageSplit, emulator.PageLost, emulator.PageCut} {
					srv.Inject(emulator.Fault{Page: how, KeepEntries: 1, Times: 1})
					got = append(got, batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: numbered(3)})...)
					srv.Inject(emulator.Fault{Page: how, KeepEntries: 1, Times: 1})
					got = append(got, list(ctx, c, &sm.ListSecretsInput{})...)
				}
				return got
			},
			want: []string{
				"s00=v", "|", "s01=v", "s02=v", "|", "s00", "|", "s01", "s02", "|",
				"s00=v", "|", "|", "s00", "|", "|",
				"s00=v", "|", "s00", "|",
			},
		},
		"LostAnswer": {
			reason: "a call without an answer has had its effect, and can be repeated with the same token",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Inject(emulator.Fault{Body: emulator.BodyNone, Times: 1})
				lost := create(ctx, c, "db", "v", token(1)) != ""
				value, _ := srv.Get("db")
				return []string{fmt.Sprint(lost), string(value), create(ctx, c, "db", "v", token(1))}
			},
			want: []string{"true", "v", ""},
		},
		"DamagedBodies": {
			reason: "a truncated answer is an error of the client, never a wrong value",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				var got []string
				for _, how := range []emulator.BodyFault{emulator.BodyTruncated, emulator.BodyAborted} {
					srv.Inject(emulator.Fault{Body: how, Times: 1})
					_, err := c.GetSecretValue(ctx, &sm.GetSecretValueInput{SecretId: aws.String("db")})
					got = append(got, fmt.Sprint(err != nil), current(ctx, c, "db"))
				}
				return got
			},
			want: []string{"true", "v", "true", "v"},
		},
		"Latency": {
			reason: "a delay that is longer than the caller's timeout is a timeout",
			run: func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
				srv.Put("db", []byte("v"))
				remove := srv.Inject(emulator.Fault{Latency: time.Hour})
				shortTimeout, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				_, err := c.GetSecretValue(shortTimeout, &sm.GetSecretValueInput{SecretId: aws.String("db")})
				remove() // the caller may have reached its timeout before
				return []string{fmt.Sprint(errors.Is(err, context.DeadlineExceeded)), current(ctx, c, "db")}
			},
			want: []string{"true", "v"},
		},
	})
}

func TestHang(t *testing.T) {
	t.Parallel()
	srv := start(t)
	srv.Put("db", []byte("v"))
	c := secretsClient(t, srv)
	remove := srv.Inject(emulator.Fault{Call: "GetSecretValue", Hang: true})

	cancelled, cancel := context.WithCancel(t.Context())
	got := make(chan string, 2)
	go func() {
		_, err := c.GetSecretValue(cancelled, &sm.GetSecretValueInput{SecretId: aws.String("db")})
		got <- fmt.Sprint(errors.Is(err, context.Canceled))
	}()
	wait(t, srv, 1)
	cancel()
	if diff := cmp.Diff("true", <-got); diff != "" {
		t.Errorf("a caller can give up: -want, +got:\n%s", diff)
	}

	go func() { got <- current(t.Context(), c, "db") }()
	wait(t, srv, 2)
	remove()
	if diff := cmp.Diff("v", <-got); diff != "" {
		t.Errorf("a released call goes on: -want, +got:\n%s", diff)
	}
}

func wait(t *testing.T, srv *emulator.Server, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := srv.Wait(ctx, n, "GetSecretValue"); err != nil {
		t.Fatalf("Wait: %v", err)
	}
}

func TestCloseWhileHanging(t *testing.T) {
	t.Parallel()
	srv, err := emulator.Start()
	if err != nil {
		t.Fatal(err)
	}
	srv.Inject(emulator.Fault{Hang: true})
	c := secretsClient(t, srv)
	done := make(chan string, 1)
	go func() { done <- current(t.Context(), c, "db") }()
	wait(t, srv, 1)
	if err := srv.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	<-done // the test binary times out if Close hangs
}

func TestRetryOfSDK(t *testing.T) {
	t.Parallel()
	srv := start(t)
	srv.Put("db", []byte("v"))
	srv.Inject(emulator.Fault{Status: http.StatusServiceUnavailable, Times: 1})
	cfg := awsConfig(t, srv, static("test", "test", ""))
	cfg.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}
	got := []string{current(t.Context(), sm.NewFromConfig(cfg), "db"), fmt.Sprint(srv.Count("GetSecretValue"))}
	if diff := cmp.Diff([]string{"v", "2"}, got); diff != "" {
		t.Errorf("the SDK's default retries get over a short outage: -want, +got:\n%s", diff)
	}
}
