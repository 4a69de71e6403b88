package emulator_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// control calls the control endpoint like another process.
func control(t *testing.T, srv *emulator.Server, method, path, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL()+"/_control/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(res.Status[:3] + " " + string(b))
}

func TestControlSecrets(t *testing.T) {
	t.Parallel()
	srv := start(t)
	c := secretsClient(t, srv)
	id, ok := strings.CutPrefix(control(t, srv, "PUT", "secrets/shop/db", "v"), `200 {"versionId":"`)
	got := []string{
		current(t.Context(), c, "shop/db"), control(t, srv, "GET", "secrets/shop/db", ""),
		control(t, srv, "DELETE", "secrets/shop/db", ""), control(t, srv, "GET", "secrets/shop/db", ""),
	}
	if !ok || len(id) < 36 {
		t.Errorf("PUT must return the version, got %q", id)
	}
	if diff := cmp.Diff([]string{"v", "200 v", "200", "404 no such secret"}, got); diff != "" {
		t.Errorf("secrets are put, read and removed: -want, +got:\n%s", diff)
	}
}

func TestControlFaults(t *testing.T) {
	t.Parallel()
	srv := start(t)
	srv.Put("db", []byte("v"))
	c := secretsClient(t, srv)
	got := []string{
		control(t, srv, "POST", "faults", `{"Operation":"GetSecretValue","Code":"ThrottlingException","Message":"slow","Latency":"1ms","RetryAfter":"2s"}`),
		current(t.Context(), c, "db"),
		control(t, srv, "DELETE", "faults/1", ""),
		control(t, srv, "DELETE", "faults/1", ""),
		current(t.Context(), c, "db"),
		control(t, srv, "POST", "faults", `{"SecretID":"db","Status":500}`),
		control(t, srv, "DELETE", "faults", ""),
		current(t.Context(), c, "db"),
		control(t, srv, "POST", "faults", `{"Secret":"db"}`),
		control(t, srv, "GET", "nothing", ""),
	}
	want := []string{
		`200 {"id":"1"}`, "ThrottlingException: slow", "200", "404 no such fault", "v", `200 {"id":"2"}`, "200", "v",
		`400 cannot decode the body: json: unknown field "Secret"`, "404 404 page not found",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults are injected and removed: -want, +got:\n%s", diff)
	}
}

func TestControlCalls(t *testing.T) {
	t.Parallel()
	srv := start(t)
	current(t.Context(), secretsClient(t, srv), "db")
	var calls struct {
		Counts map[string]int
		Log    []emulator.Call
	}
	if err := json.Unmarshal([]byte(control(t, srv, "GET", "calls", "")[4:]), &calls); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(srv.Calls()[0].SecretIDs, calls.Log[0].SecretIDs); diff != "" {
		t.Errorf("log: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"GetSecretValue": 1}, calls.Counts); diff != "" {
		t.Errorf("counts: -want, +got:\n%s", diff)
	}
	control(t, srv, "POST", "reset", "")
	if n := srv.Count(); n != 0 {
		t.Errorf("calls after reset: want 0, got %d", n)
	}
}

func TestControlIdentities(t *testing.T) {
	t.Parallel()
	srv := start(t)
	srv.Put("db", []byte("v"))
	control(t, srv, "POST", "credentials", `{"AccessKeyID":"AKIANEW","SecretAccessKey":"pass"}`)
	control(t, srv, "POST", "roles", `{"ARN":"`+roleA+`","Principals":["*"],"MaxSessionDuration":"2h"}`)
	session, callerIdentity := assume(t.Context(), t, srv, static("AKIANEW", "pass", ""), &sts.AssumeRoleInput{
		RoleArn: aws.String(roleA), RoleSessionName: aws.String("session"), DurationSeconds: aws.Int32(7200),
	})
	if session == nil {
		t.Fatalf("AssumeRole: %s", callerIdentity)
	}
	c := sm.NewFromConfig(awsConfig(t, srv, session))
	got := []string{current(t.Context(), c, "db")}
	var sessions []emulator.Session
	if err := json.Unmarshal([]byte(control(t, srv, "GET", "sessions", "")[4:]), &sessions); err != nil {
		t.Fatal(err)
	}
	got = append(got, sessions[0].SourceAccessKeyID, sessions[0].Expires.Sub(sessions[0].Issued).Round(time.Second).String())
	control(t, srv, "POST", "sessions/expire", "")
	got = append(got, current(t.Context(), c, "db"))
	want := []string{"v", "AKIANEW", "2h0m0s", "ExpiredTokenException: The security token included in the request is expired"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("credentials, roles and sessions are managed: -want, +got:\n%s", diff)
	}
}
