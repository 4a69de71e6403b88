package emulator_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	sm "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

const badSignature = "The request signature we calculated does not match the signature you provided. " +
	"Check your AWS Secret Access Key and signing method. Consult the service documentation for details."

func TestCredentials(t *testing.T) {
	other := emulator.WithCredentials(emulator.Credential{AccessKeyID: "AKIAOTHER", SecretAccessKey: "pass", UserName: "bob"})
	cases := map[string]struct {
		reason   string
		opts     []emulator.Option
		provider aws.CredentialsProvider
		secrets  string
		sts      string
	}{
		"Default":        {"test/test is known by default", nil, static("test", "test", ""), "v", "arn:aws:iam::000000000000:user/test"},
		"Registered":     {"a registered key is known", []emulator.Option{other}, static("AKIAOTHER", "pass", ""), "v", "arn:aws:iam::000000000000:user/bob"},
		"DefaultReplace": {"registered keys replace the default", []emulator.Option{other}, static("test", "test", ""), "UnrecognizedClientException: The security token included in the request is invalid.", "InvalidClientTokenId: The security token included in the request is invalid."},
		"WrongSecret":    {"a wrong secret key is a wrong signature", nil, static("test", "wrong", ""), "InvalidSignatureException: " + badSignature, "SignatureDoesNotMatch: " + badSignature},
		"SpareToken":     {"a session token for a static key is invalid", nil, static("test", "test", "token"), "UnrecognizedClientException: The security token included in the request is invalid.", "InvalidClientTokenId: The security token included in the request is invalid."},
		"Anonymous":      {"an unsigned request is rejected", nil, aws.AnonymousCredentials{}, "MissingAuthenticationTokenException: Request is missing Authentication Token", "MissingAuthenticationToken: Request is missing Authentication Token"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, tc.opts...)
			srv.Put("db", []byte("v"))
			cfg := awsConfig(t, srv, tc.provider)
			if diff := cmp.Diff(tc.secrets, current(t.Context(), sm.NewFromConfig(cfg), "db")); diff != "" {
				t.Errorf("\n%s\nsecretsmanager: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.sts, whoami(t.Context(), sts.NewFromConfig(cfg))); diff != "" {
				t.Errorf("\n%s\nsts: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func whoami(ctx context.Context, c *sts.Client) string {
	out, err := c.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return apiError(err)
	}
	return *out.Arn
}

func TestSignedPath(t *testing.T) {
	srv := start(t)
	cases := map[string]struct {
		reason       string
		signed, sent string
		want         int
	}{
		"Same":     {"the signed path is accepted", "/", "/", http.StatusOK},
		"Slashes":  {"redundant slashes are ignored", "/", "//", http.StatusOK},
		"Relative": {"relative parts are resolved", "/a/", "/./b/../a/", http.StatusOK},
		"Other":    {"another path is rejected", "/", "/a", http.StatusForbidden},
		"Folder":   {"a slash at the end is not ignored", "/a", "/a/", http.StatusForbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const body = "Action=GetCallerIdentity&Version=2011-06-15"
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL()+tc.signed, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(body))
			key := aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}
			if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(sum[:]), "sts", "us-east-1", time.Now()); err != nil {
				t.Fatal(err)
			}
			r.URL.Path = tc.sent
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil {
				t.Error(err)
			}
			if res.StatusCode != tc.want {
				t.Errorf("%s: got %s, want %d", tc.reason, res.Status, tc.want)
			}
		})
	}
}

func TestReplacedCredential(t *testing.T) {
	t.Parallel()
	srv := start(t)
	srv.Put("db", []byte("v"))
	c := secretsClient(t, srv)
	got := []string{current(t.Context(), c, "db")}
	srv.AddCredential(emulator.Credential{AccessKeyID: "test", SecretAccessKey: "rotated"})
	got = append(got, current(t.Context(), c, "db"))
	srv.RemoveCredential("test")
	got = append(got, current(t.Context(), c, "db"))
	want := []string{"v", "InvalidSignatureException: " + badSignature, "UnrecognizedClientException: The security token included in the request is invalid."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a key that is replaced or removed takes effect at once: -want, +got:\n%s", diff)
	}
}

func TestDeny(t *testing.T) {
	denied := func(action, resource string) string {
		if resource != "" {
			resource = " on resource: " + resource
		}
		return fmt.Sprintf("AccessDeniedException: User: arn:aws:iam::000000000000:user/test is not authorized to perform: "+
			"secretsmanager:%[1]s%[2]s because no identity-based policy allows the secretsmanager:%[1]s action", action, resource)
	}
	deny := func(d ...emulator.Deny) []emulator.Option {
		return []emulator.Option{emulator.WithCredentials(emulator.Credential{AccessKeyID: "test", SecretAccessKey: "test", UserName: "test", Deny: d})}
	}
	readAll := func(ctx context.Context, _ *testing.T, srv *emulator.Server, c *sm.Client) []string {
		srv.Put("shop/db", []byte("v"))
		srv.Put("web/db", []byte("w"))
		got := []string{current(ctx, c, "shop/db"), current(ctx, c, "web/db")}
		return append(got, batch(ctx, c, &sm.BatchGetSecretValueInput{SecretIdList: []string{"shop/db", "web/db"}})...)
	}
	runScripts(t, map[string]scriptCase{
		"Batch": {
			reason: "the whole batch can be denied while single reads are allowed",
			opts:   deny(emulator.Deny{Action: "secretsmanager:BatchGetSecretValue"}),
			run:    readAll,
			want:   []string{"v", "w", denied("BatchGetSecretValue", "")},
		},
		"OneSecret": {
			reason: "a denied secret fails alone, also within a batch",
			opts:   deny(emulator.Deny{Action: "secretsmanager:Get*", Secret: "shop/*"}),
			run:    readAll,
			want:   []string{denied("GetSecretValue", "shop/db"), "w", "web/db=w", "shop/db: " + denied("GetSecretValue", "shop/db"), "|"},
		},
		"Unknown": {
			reason: "a denied caller does not learn which secrets exist",
			opts:   deny(emulator.Deny{Action: "*"}),
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return append([]string{current(ctx, c, "none")}, list(ctx, c, &sm.ListSecretsInput{})...)
			},
			want: []string{denied("GetSecretValue", "none"), denied("ListSecrets", "")},
		},
		"FiltersNeedList": {
			reason: "a batch by filters needs the permission to list secrets",
			opts:   deny(emulator.Deny{Action: "secretsmanager:ListSecrets"}),
			run: func(ctx context.Context, _ *testing.T, _ *emulator.Server, c *sm.Client) []string {
				return batch(ctx, c, &sm.BatchGetSecretValueInput{Filters: where("name", "a")})
			},
			want: []string{denied("ListSecrets", "")},
		},
	})
}
