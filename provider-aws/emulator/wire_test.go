package emulator_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

func TestWire(t *testing.T) {
	cases := map[string]struct {
		reason string
		target string
		kind   string
		body   string
		want   string
	}{
		"UnknownOperation": {"an unknown operation is rejected", "secretsmanager.RotateSecret", "application/x-amz-json-1.1", "{}",
			`400 application/x-amz-json-1.1 {"Message":"","__type":"UnknownOperationException"}`},
		"OtherService": {"another service", "DynamoDB_20120810.GetItem", "application/x-amz-json-1.1", "{}",
			`400 application/x-amz-json-1.1 {"Message":"","__type":"UnknownOperationException"}`},
		"NoJSON": {"the answer does not repeat an invalid body", "secretsmanager.PutSecretValue", "application/x-amz-json-1.1", `{"SecretString":"canary`,
			`400 application/x-amz-json-1.1 {"Message":"The request is not valid JSON for PutSecretValue.","__type":"SerializationException"}`},
		"Unsigned": {"a request without a signature is rejected", "secretsmanager.ListSecrets", "application/x-amz-json-1.1", "{}",
			`400 application/x-amz-json-1.1 {"__type":"MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}`},
		"UnknownAction": {"the answer of STS is XML", "", "application/x-www-form-urlencoded", "Action=GetFederationToken&Version=2011-06-15",
			`400 text/xml <ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>InvalidAction</Code>` +
				`<Message>Could not find operation GetFederationToken for version 2011-06-15</Message></Error><RequestId>ID</RequestId></ErrorResponse>`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.kind)
			if tc.target != "" {
				r.Header.Set("X-Amz-Target", tc.target)
			}
			w := httptest.NewRecorder()
			emulator.New().ServeHTTP(w, r)
			body := bytes.ReplaceAll(w.Body.Bytes(), []byte(w.Header().Get("X-Amzn-Requestid")), []byte("ID"))
			got := strings.Join([]string{w.Result().Status[:3], w.Header().Get("Content-Type"), string(body)}, " ")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzAuthorization checks that a damaged Authorization header neither passes nor panics.
func FuzzAuthorization(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/secretsmanager/aws4_request, SignedHeaders=host;x-amz-date, Signature=00")
	f.Add("AWS4-HMAC-SHA256 Credential=////, SignedHeaders=;, Signature=,")
	f.Add("Basic dGVzdDp0ZXN0")
	e := emulator.New()
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Header.Set("X-Amz-Target", "secretsmanager.ListSecrets")
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if _, err := io.Copy(io.Discard, w.Result().Body); err != nil || w.Code != http.StatusBadRequest {
			t.Errorf("want 400, got %d, %v", w.Code, err)
		}
	})
}
