package awsconfig

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
)

// identities answers as a container credentials endpoint, and as STS for a web identity.
func identities(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if r.Header.Get("Authorization") != "pod-token" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprint(w, `{"AccessKeyId":"pod","SecretAccessKey":"pod","Token":"pod","Expiration":"2099-01-01T00:00:00Z"}`) // The client checks the answer.
		return
	}
	_ = r.ParseForm() // A missing field shows in the answer below.
	if r.Form.Get("RoleArn") != "arn:aws:iam::000000000000:role/operator" || r.Form.Get("WebIdentityToken") != "web-token" || r.Form.Get("RoleSessionName") != "me" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	_, _ = fmt.Fprint(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>`+ // The client checks the answer.
		`<AccessKeyId>web</AccessKeyId><SecretAccessKey>web</SecretAccessKey><SessionToken>web</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>`+
		`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
}

// TestAmbient takes the operator's identity from each source that a pod has.
func TestAmbient(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(identities))
	t.Cleanup(srv.Close)
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	web := map[string]string{
		"AWS_WEB_IDENTITY_TOKEN_FILE": file("web", "web-token"), "AWS_ROLE_ARN": "arn:aws:iam::000000000000:role/operator",
		"AWS_ROLE_SESSION_NAME": "me", "AWS_ENDPOINT_URL_STS": srv.URL,
	}
	pod := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": srv.URL + "/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": file("pod", "pod-token")}
	inline := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": srv.URL, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "pod-token"}
	profile := map[string]string{"AWS_PROFILE": "prod"}
	key := map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "key"}
	cases := map[string]struct {
		reason string
		env    []map[string]string
		want   string // the access key id of the credentials, or part of the error
	}{
		"Key":         {"An access key comes first.", []map[string]string{key, web, pod, profile}, "key"},
		"WebIdentity": {"The role of the pod's ServiceAccount comes second.", []map[string]string{web, pod, profile}, "web"},
		"Pod":         {"EKS Pod Identity comes third.", []map[string]string{pod}, "pod"},
		"PodInline":   {"The token of EKS Pod Identity can be in the environment.", []map[string]string{inline}, "pod"},
		"Profile":     {"A profile is rejected, not ignored.", []map[string]string{pod, profile}, "the operator has AWS_PROFILE, but does not read profile files"},
		"NoRole":      {"A token without a role is rejected.", []map[string]string{{"AWS_WEB_IDENTITY_TOKEN_FILE": web["AWS_WEB_IDENTITY_TOKEN_FILE"]}}, "without AWS_ROLE_ARN"},
		"PlainPod":    {"A container endpoint on another host needs https.", []map[string]string{{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/"}}, "neither https nor an address of the host"},
		"NoBundle":    {"An unreadable bundle is rejected, and the system's authorities are not used instead.", []map[string]string{key, {"AWS_CA_BUNDLE": file("empty", "")}}, "AWS_CA_BUNDLE"},
		"Unreadable":  {"The error names the invalid variable.", []map[string]string{key, {"AWS_MAX_ATTEMPTS": "many"}}, "AWS_MAX_ATTEMPTS"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, kv := range os.Environ() {
				if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "AWS_") {
					t.Setenv(k, "")
				}
			}
			for _, vars := range tc.env {
				for k, v := range vars {
					t.Setenv(k, v)
				}
			}
			c, err := load(t, v1alpha1.AWSSpec{Region: "eu-central-1"}, kube{})
			var got aws.Credentials
			if err == nil {
				got, err = c.AWS.Credentials.Retrieve(t.Context())
			}
			if err != nil {
				if e := provider.Safe(err); e.Class != provider.Invalid || !strings.Contains(e.Message, tc.want) {
					t.Errorf("%s\nerror %v, want %q", tc.reason, err, tc.want)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got.AccessKeyID); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBundle makes the operator trust the authority of AWS_CA_BUNDLE, and no other.
func TestBundle(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key")
	for file, trusted := range map[string]bool{"": false, bundle: true} {
		t.Setenv("AWS_CA_BUNDLE", file)
		c, err := load(t, v1alpha1.AWSSpec{Region: "eu-central-1"}, kube{})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.AWS.HTTPClient.Do(req)
		if err == nil {
			_ = resp.Body.Close() // The body is empty.
		}
		if (err == nil) != trusted {
			t.Errorf("with bundle %q: error %v, want it trusted: %t", file, err, trusted)
		}
	}
}
