package emulator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// TestControl makes calls like another process: one to the control endpoint, and one to the API.
func TestControl(t *testing.T) {
	srv := start(t)
	control := func(method, path, body, want string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL()+"/_control/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := answer(t, r); !strings.HasPrefix(got, want) {
			t.Errorf("%s %s: got %s, want %s…", method, path, got, want)
		}
	}
	api := func(want string) {
		t.Helper()
		run(t, srv, []step{{call: "secretsmanager.GetSecretValue", body: `{"SecretId":"shop/db"}`, want: want}})
	}
	control("PUT", "secrets/shop/db", "v", `200 {"versionId":"`)
	api(`"SecretString":"v"`)
	control("GET", "secrets/shop/db", "", "200 v")

	control("POST", "faults", `{"Operation":"GetSecretValue","Code":"ThrottlingException","Message":"slow","Latency":"1ms","RetryAfter":"2s"}`, `200 {"id":"1"}`)
	api("ThrottlingException")
	control("DELETE", "faults/1", "", "200")
	control("DELETE", "faults/1", "", "404 no such fault")
	api(`"SecretString":"v"`)
	control("POST", "faults", `{"SecretID":"shop/db","Status":500}`, `200 {"id":"2"}`)
	control("DELETE", "faults", "", "200")
	api(`"SecretString":"v"`)
	control("POST", "faults", `{"Secret":"shop/db"}`, `400 cannot decode the body: json: unknown field "Secret"`)
	control("POST", "faults", `{"Page":"lost","KeepEntries":0,"Times":1}`, "200")
	run(t, srv, []step{
		{call: "secretsmanager.ListSecrets", body: "{}", want: `{"SecretList":[],"NextToken":"`},
		{call: "secretsmanager.ListSecrets", body: "{}", want: `"Name":"shop/db"`},
	})

	control("GET", "calls", "", `200 {"counts":{"GetSecretValue":4,"ListSecrets":2},"log":[{"Time":"`)
	control("POST", "reset", "", "200")
	control("GET", "calls", "", `200 {"counts":null,"log":null}`)

	control("POST", "credentials", `{"AccessKeyID":"AKIANEW","SecretAccessKey":"pass"}`, "200")
	control("POST", "roles", `{"ARN":"`+roleA+`","Policy":{"Statement":[{"Effect":"Allow","NotAction":"*"}]}}`, "400")
	control("POST", "roles", `{"ARN":"`+roleA+`","Principals":["*"],"MaxSessionDuration":"2h"}`, "200")
	session := assume(t, srv, aws.Credentials{AccessKeyID: "AKIANEW", SecretAccessKey: "pass"}, "RoleSessionName=control&DurationSeconds=7200&RoleArn="+roleA)
	get := step{call: "secretsmanager.GetSecretValue", body: `{"SecretId":"shop/db"}`, key: session, want: `"SecretString":"v"`}
	run(t, srv, []step{get})
	control("GET", "sessions", "", `200 [{"AccessKeyID":"`+session.AccessKeyID)
	control("POST", "sessions/expire", "", "200")
	get.want = "ExpiredTokenException"
	run(t, srv, []step{get})

	control("DELETE", "secrets/shop/db", "", "200")
	control("GET", "secrets/shop/db", "", "404 no such secret")
	control("GET", "nothing", "", "404")
}
