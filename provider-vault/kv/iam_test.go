package kv

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// stubbed makes the proxy answer logins at a path, like Vault, if right accepts the body.
func stubbed(t *testing.T, path string, right func(body M) string) (*vaulttest.Server, creds) {
	t.Helper()
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	secrets["password"], secrets["key-id"], secrets["key"], secrets["garbage"] = "pw", "AKIDEXAMPLE", "c4n4ry", "c4n4ry"
	token := srv.Token(M{"policies": []string{"reader"}})
	t.Cleanup(srv.Inject(vaulttest.On(path), func(w http.ResponseWriter, r *http.Request) {
		body := M{}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if wrong := right(body); wrong != "" {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(M{"errors": []string{wrong}}) // The client checks the answer.
			return
		}
		_ = json.NewEncoder(w).Encode(M{"auth": M{"client_token": token, "lease_duration": 3600, "renewable": true}}) // The client checks the answer.
	}))
	return srv, secrets
}

// TestIAM checks the request of a login against https://developer.hashicorp.com/vault/api-docs/auth/aws#login.
// e2e/vaultiam tests that Vault sends it to STS and accepts its caller.
func TestIAM(t *testing.T) {
	srv, secrets := stubbed(t, "auth/aws/login", func(body M) string {
		if body["role"] != "shop" {
			return "entry for role other not found"
		}
		decoded := func(field string) string {
			raw, err := base64.StdEncoding.DecodeString(body[field].(string))
			if err != nil {
				t.Error(err)
			}
			return string(raw)
		}
		var header http.Header
		if err := json.Unmarshal([]byte(decoded("iam_request_headers")), &header); err != nil {
			return err.Error()
		}
		signed := header.Get("Authorization")
		for _, part := range []string{"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/", "/eu-central-1/sts/aws4_request", "x-vault-aws-iam-server-id", "host"} {
			if !strings.Contains(signed, part) {
				t.Errorf("signature %q lacks %q", signed, part)
			}
		}
		return cmp.Diff([]string{"POST", "https://sts.eu-central-1.amazonaws.com/", "Action=GetCallerIdentity&Version=2011-06-15", "sts.eu-central-1.amazonaws.com", "vault.example.com"},
			[]string{body["iam_http_request_method"].(string), decoded("iam_request_url"), decoded("iam_request_body"), header.Get("Host"), header.Get("X-Vault-AWS-IAM-Server-ID")})
	})
	auth := v1alpha1.IAMAuth{
		Region: "eu-central-1", Role: "shop", ServerID: "vault.example.com",
		SecretRef: &v1alpha1.IAMSecretRef{AccessKeyIDSecretRef: ref("key-id"), SecretAccessKeySecretRef: ref("key")},
	}
	cases := map[string]struct {
		change func(*v1alpha1.IAMAuth)
		want   string
	}{
		"Key":       {func(*v1alpha1.IAMAuth) {}, db},
		"WrongRole": {func(a *v1alpha1.IAMAuth) { a.Role = "other" }, "Denied: spec.auth.iam.vaultRole: "},
		"NoKey": {func(a *v1alpha1.IAMAuth) {
			a.SecretRef = &v1alpha1.IAMSecretRef{AccessKeyIDSecretRef: ref("key-id"), SecretAccessKeySecretRef: ref("none")}
		}, "Invalid: spec.auth.iam.secretRef.secretAccessKeySecretRef: Secret"},
		"NoAccount": {func(a *v1alpha1.IAMAuth) {
			a.SecretRef, a.AWSIAMRole, a.ServiceAccountRef = nil, "arn:aws:iam::000000000000:role/shop", account("missing")
		}, "Invalid: spec.auth.iam.serviceAccountRef: ServiceAccount"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := auth
			tc.change(&a)
			c := connect(t, appRole(srv.URL, withAuth(v1alpha1.VaultAuth{IAM: &a})), secrets)
			if got := read1(t, c); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q…", got, tc.want)
			}
		})
	}
}
