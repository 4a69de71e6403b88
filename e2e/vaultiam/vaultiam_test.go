// Package vaultiam logs in to a real Vault with an AWS identity, which Vault verifies with the emulator's STS.
// It is in neither provider, because no provider can import another.
package vaultiam

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/kv"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// M is a JSON object.
type M = vaulttest.M

const (
	region   = "eu-central-1"
	aliceARN = "arn:aws:iam::000000000000:user/alice"
	roleARN  = "arn:aws:iam::000000000000:role/shop"
	serverID = "vault.example.com"
	db       = `{"password":"one"}`
)

// creds are the values of Secrets, by key. The test needs no other credentials.
type creds struct {
	provider.Credentials
	values map[string]string
}

func (c creds) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	return []byte(c.values[sel.Key]), nil
}

// identities starts an AWS with the users alice and eve, and a role that alice can assume.
func identities(t *testing.T) (*emulator.Server, creds) {
	t.Helper()
	srv, err := emulator.Start(
		emulator.WithRegion(region),
		emulator.WithRoles(emulator.Role{ARN: roleARN, Principals: []string{aliceARN}}),
		emulator.WithCredentials(
			emulator.Credential{AccessKeyID: "AKIDALICE", SecretAccessKey: "alice-c4n4ry", UserName: "alice"},
			emulator.Credential{AccessKeyID: "AKIDEVE", SecretAccessKey: "eve-c4n4ry", UserName: "eve"},
		))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	client := sts.New(sts.Options{
		Region: region, BaseEndpoint: aws.String(srv.URL()),
		Credentials: credentials.NewStaticCredentialsProvider("AKIDALICE", "alice-c4n4ry", ""),
	})
	session, err := client.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String(roleARN), RoleSessionName: aws.String("shop")})
	if err != nil {
		t.Fatal(err)
	}
	return srv, creds{values: map[string]string{
		"alice": "AKIDALICE", "alice-key": "alice-c4n4ry",
		"eve": "AKIDEVE", "eve-key": "eve-c4n4ry",
		"session": *session.Credentials.AccessKeyId, "session-key": *session.Credentials.SecretAccessKey,
		"session-token": *session.Credentials.SessionToken,
	}}
}

// vault starts a Vault that uses that AWS, and lets alice and the role read.
func vault(t *testing.T, endpoint string) *vaulttest.Server {
	t.Helper()
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Do(http.MethodPost, "secret/data/shop/db", M{"data": M{"password": "one"}})
	srv.Policy("reader", `path "secret/*" { capabilities = ["read"] }`)
	srv.Enable("aws")
	srv.Do(http.MethodPost, "auth/aws/config/client", M{
		"sts_endpoint": endpoint, "sts_region": region, "iam_server_id_header_value": serverID, "max_retries": 0,
	})
	srv.Do(http.MethodPost, "auth/aws/role/reader", M{
		"auth_type": "iam", "resolve_aws_unique_ids": false, "token_policies": "reader",
		"bound_iam_principal_arn": []string{aliceARN, roleARN},
	})
	return srv
}

func selector(key string) common.SecretKeySelector {
	return common.SecretKeySelector{Name: "aws", Key: key}
}

// static returns a login with an access key.
func static(id, key string) v1alpha1.IAMAuth {
	return v1alpha1.IAMAuth{
		Region: region, Role: "reader", ServerID: serverID,
		SecretRef: &v1alpha1.IAMSecretRef{AccessKeyIDSecretRef: selector(id), SecretAccessKeySecretRef: selector(key)},
	}
}

// read reads with a new store.
func read(t *testing.T, url string, auth v1alpha1.IAMAuth, c creds) string {
	t.Helper()
	s := &v1alpha1.VaultKV{Spec: v1alpha1.VaultKVSpec{
		Path: "secret",
		VaultServer: v1alpha1.VaultServer{
			RetrySpec: common.RetrySpec{RetrySettings: &common.RetrySettings{MaxRetries: new(int32(0))}},
			Server:    url, Auth: &v1alpha1.VaultAuth{IAM: &auth},
		},
	}}
	client, err := kv.Connect(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := provider.Close(client); err != nil {
			t.Error(err)
		}
	}()
	v, err := client.Get(t.Context(), provider.Ref{Key: "shop/db"})
	if err != nil {
		return string(provider.ClassOf(err)) + ": " + provider.Safe(err).Error()
	}
	return string(v.Data)
}

func TestLogin(t *testing.T) {
	cloud, c := identities(t)
	srv := vault(t, cloud.URL())
	change := func(a v1alpha1.IAMAuth, f func(*v1alpha1.IAMAuth)) v1alpha1.IAMAuth { f(&a); return a }
	const refused = "Denied: spec.auth.iam.secretRef: Vault does not accept the AWS identity"
	cases := map[string]struct {
		reason string
		auth   v1alpha1.IAMAuth
		want   string
	}{
		"Key":          {"alice can log in to the role that is bound to her", static("alice", "alice-key"), db},
		"GlobalRegion": {"without a region the request is signed for the global endpoint", change(static("alice", "alice-key"), func(a *v1alpha1.IAMAuth) { a.Region = "" }), db},
		"Session": {"a session of the AWS role can log in", change(static("session", "session-key"), func(a *v1alpha1.IAMAuth) {
			a.SecretRef.SessionTokenSecretRef = new(selector("session-token"))
		}), db},
		"NoToken":       {"the key of a session without its token is rejected", static("session", "session-key"), refused},
		"WrongKey":      {"a wrong secret access key is rejected", static("alice", "eve-key"), refused},
		"UnknownKey":    {"an unknown user is rejected", static("alice-key", "alice-key"), refused},
		"OtherIdentity": {"a user to whom the role is not bound is rejected", static("eve", "eve-key"), refused},
		"WrongServer":   {"a request that is signed for another Vault is rejected", change(static("alice", "alice-key"), func(a *v1alpha1.IAMAuth) { a.ServerID = "other" }), refused},
		"WrongRole": {"an unknown role is rejected", change(static("alice", "alice-key"), func(a *v1alpha1.IAMAuth) { a.Role = "other" }),
			"Denied: spec.auth.iam.vaultRole: the role does not exist at Vault"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := read(t, srv.URL, tc.auth, c)
			if !strings.HasPrefix(got, tc.want) || strings.Contains(got, "c4n4ry") {
				t.Errorf("%s: got %s, want %s…", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCloudAway(t *testing.T) {
	cloud, c := identities(t)
	srv := vault(t, cloud.URL())
	remove := cloud.Inject(emulator.Fault{Call: "GetCallerIdentity", Code: "InternalFailure", Status: http.StatusInternalServerError})
	want := "Unavailable: spec.auth.iam: Vault cannot reach the STS of AWS"
	if got := read(t, srv.URL, static("alice", "alice-key"), c); got != want {
		t.Errorf("a server error of AWS must not be reported as a wrong key: got %s, want %s", got, want)
	}
	remove()
	if got := read(t, srv.URL, static("alice", "alice-key"), c); got != db {
		t.Errorf("the login must succeed after the outage: %s", got)
	}
	if err := cloud.Close(); err != nil {
		t.Error(err)
	}
	if got := read(t, srv.URL, static("alice", "alice-key"), c); got != want {
		t.Errorf("an unreachable AWS must not be reported as a wrong key: got %s, want %s", got, want)
	}
}
