package main

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

// stores create a store of each AWS Kind in a namespace.
var stores = map[string]func(namespace string, spec v1alpha1.AWSSpec) provider.Object{
	"AWSSecretsManager": func(namespace string, spec v1alpha1.AWSSpec) provider.Object { return newStore(namespace, "", spec) },
	"AWSParameterStore": func(namespace string, spec v1alpha1.AWSSpec) provider.Object {
		return &v1alpha1.AWSParameterStore{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: v1alpha1.AWSParameterStoreSpec{AWSSpec: spec},
		}
	},
}

// clusterStores create a store of each cluster Kind.
var clusterStores = map[string]func(spec v1alpha1.AWSSpec, serves common.ClusterStoreSpec) provider.ClusterObject{
	"ClusterAWSSecretsManager": func(spec v1alpha1.AWSSpec, serves common.ClusterStoreSpec) provider.ClusterObject {
		return &v1alpha1.ClusterAWSSecretsManager{Spec: v1alpha1.ClusterAWSSecretsManagerSpec{
			AWSSecretsManagerSpec: v1alpha1.AWSSecretsManagerSpec{AWSSpec: spec}, ClusterStoreSpec: serves,
		}}
	},
	"ClusterAWSParameterStore": func(spec v1alpha1.AWSSpec, serves common.ClusterStoreSpec) provider.ClusterObject {
		return &v1alpha1.ClusterAWSParameterStore{Spec: v1alpha1.ClusterAWSParameterStoreSpec{
			AWSParameterStoreSpec: v1alpha1.AWSParameterStoreSpec{AWSSpec: spec}, ClusterStoreSpec: serves,
		}}
	},
}

// readsOf returns a function that lists the secrets and parameters read from an emulator, as "GetParameter a".
func readsOf(srv *emulator.Server) func() []string {
	return func() []string {
		reads := []string{}
		for _, c := range srv.Calls() {
			switch c.Operation {
			case "GetSecretValue", "BatchGetSecretValue", "GetParameter", "GetParameters", "GetParametersByPath":
				for _, id := range c.SecretIDs {
					reads = append(reads, c.Operation+" "+id)
				}
			}
		}
		return reads
	}
}

// sdk returns the configuration with which the test itself calls an emulator.
func sdk(srv *emulator.Server) aws.Config {
	return aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(srv.URL()), Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// expiredKey returns an access key whose session has expired.
func expiredKey(t *testing.T, srv *emulator.Server, role string) map[string]string {
	t.Helper()
	out, err := sts.NewFromConfig(sdk(srv)).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String(role), RoleSessionName: aws.String("test")})
	if err != nil {
		t.Fatal(err)
	}
	srv.ExpireSessions()
	return map[string]string{"id": *out.Credentials.AccessKeyId, "key": *out.Credentials.SecretAccessKey, "token": *out.Credentials.SessionToken}
}

func TestBadAuth(t *testing.T) {
	const (
		ns       = "bad-auth"
		roles    = "arn:aws:iam::000000000000:role/"
		user     = "arn:aws:iam::000000000000:user/test"
		identity = "system:serviceaccount:" + ns + ":default"
		keyID    = "spec.auth.secretRef.accessKeyIDSecretRef: "
		key      = "spec.auth.secretRef.secretAccessKeySecretRef: "
		session  = "spec.auth.secretRef.sessionTokenSecretRef: "
		account  = "spec.auth.serviceAccountRef: "
		invalid  = common.ReasonStoreInvalidSpec
		failed   = common.ReasonStoreAuthFailed
	)
	srv := startEmulator(t, emulator.WithRoles(
		emulator.Role{ARN: roles + "first", Principals: []string{user}},
		emulator.Role{ARN: roles + "guarded", ExternalID: "right"},
		emulator.Role{ARN: roles + "web", WebIdentities: []emulator.WebIdentity{{Subject: identity, Audience: "sts.amazonaws.com"}}},
		emulator.Role{ARN: roles + "elsewhere", WebIdentities: []emulator.WebIdentity{{Subject: "system:serviceaccount:bank:default", Audience: "sts.amazonaws.com"}}},
	))
	untrustedServer := httptest.NewUnstartedServer(nil)
	untrustedServer.Config.ErrorLog = log.New(io.Discard, "", 0) // The TLS handshakes with this server fail.
	untrustedServer.StartTLS()
	t.Cleanup(untrustedServer.Close)
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("aws", accessKey)
	suite.For(t).In(ns).Source("expired", expiredKey(t, srv, roles+"first"))
	suite.For(t).In(ns).Source("bad", map[string]string{"id": "AKIAUNKNOWN", "key": "c4n4ry", "token": "c4n4ry", "blank": " \n"})
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)

	ref := func(name, key string) common.SecretKeySelector {
		return common.SecretKeySelector{Name: name, Key: key}
	}
	static := func(id, key common.SecretKeySelector, token ...common.SecretKeySelector) *v1alpha1.AWSAuth {
		a := &v1alpha1.AWSAuth{SecretRef: &v1alpha1.AWSSecretRef{AccessKeyIDSecretRef: id, SecretAccessKeySecretRef: key}}
		if len(token) > 0 {
			a.SecretRef.SessionTokenSecretRef = &token[0]
		}
		return a
	}
	web := func(name string, audiences ...string) *v1alpha1.AWSAuth {
		return &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Name: name, Audiences: audiences}}
	}
	good, goodID, goodKey := byKey(), ref("aws", "id"), ref("aws", "key")
	in := func(namespace string, sel common.SecretKeySelector) common.SecretKeySelector {
		sel.Namespace = namespace
		return sel
	}
	cases := map[string]struct {
		why               string
		spec              v1alpha1.AWSSpec
		want, wantMessage string
	}{
		"NoIDSecret":   {"The Secret of the access key id does not exist.", v1alpha1.AWSSpec{Auth: static(ref("none", "id"), goodKey)}, invalid, keyID + "Secret bad-auth/none does not exist"},
		"UnknownID":    {"AWS does not know the access key id.", v1alpha1.AWSSpec{Auth: static(ref("bad", "id"), goodKey)}, failed, keyID},
		"IDElsewhere":  {"A namespaced store reads only Secrets in its own namespace.", v1alpha1.AWSSpec{Auth: static(in("bank", goodID), goodKey)}, invalid, keyID + "Secret aws must not name a namespace"},
		"WrongKey":     {"The secret access key is of another access key id.", v1alpha1.AWSSpec{Auth: static(goodID, ref("bad", "key"))}, failed, key},
		"NoToken":      {"The Secret of the session token does not exist.", v1alpha1.AWSSpec{Auth: static(goodID, goodKey, ref("none", "token"))}, invalid, session + "Secret bad-auth/none does not exist"},
		"ExpiredToken": {"The session has expired.", v1alpha1.AWSSpec{Auth: static(ref("expired", "id"), ref("expired", "key"), ref("expired", "token"))}, failed, session},
		"NoAccount":    {"The ServiceAccount does not exist.", v1alpha1.AWSSpec{Role: roles + "web", Auth: web("missing")}, invalid, account + "ServiceAccount bad-auth/missing does not exist"},
		"WebForbidden": {"The role trusts another ServiceAccount.", v1alpha1.AWSSpec{Role: roles + "elsewhere", Auth: web("default")}, failed, "spec.role: cannot assume role " + roles + "elsewhere"},
		"NoExternalID": {"The role requires an external id.", v1alpha1.AWSSpec{Role: roles + "guarded", Auth: good}, failed, "spec.externalID"},
		"FirstRole":    {"The first of additionalRoles cannot be assumed.", v1alpha1.AWSSpec{AdditionalRoles: []string{roles + "web"}, Role: roles + "first", Auth: good}, failed, "spec.additionalRoles[0]: cannot assume role"},
		"Ambient":      {"A namespaced store does not get the operator's own identity.", v1alpha1.AWSSpec{}, invalid, "spec.auth: "},
		"UnknownCA":    {"The server's certificate is not trusted.", v1alpha1.AWSSpec{Endpoint: untrustedServer.URL, Auth: good}, common.ReasonStoreUnreachable, "check spec.endpoint"},
		"PlainHTTP":    {"Plain http to another host is rejected.", v1alpha1.AWSSpec{Endpoint: "http://aws.example", Auth: good}, invalid, "spec.endpoint: "},
	}
	at := func(spec v1alpha1.AWSSpec) v1alpha1.AWSSpec {
		spec.Region = "us-east-1"
		if spec.Endpoint == "" {
			spec.Endpoint = srv.URL()
		}
		return spec
	}
	for kind, make := range stores {
		bad := map[string]operatortest.BadStore{}
		for name, tc := range cases {
			bad[name] = operatortest.BadStore{Why: tc.why, Store: make(ns, at(tc.spec)), Want: tc.want, Message: tc.wantMessage}
		}
		t.Run(kind, func(t *testing.T) { suite.BadStores(t, ns, bad, readsOf(srv)) })
	}

	for kind, make := range clusterStores {
		t.Run(kind, func(t *testing.T) {
			none, perNamespace := common.ClusterStoreSpec{}, common.ClusterStoreSpec{ScopeSpec: common.ScopeSpec{AuthenticationScope: common.ScopeManifestNamespace}}
			suite.BadStores(t, ns, map[string]operatortest.BadStore{
				"NoNamespace":        {Why: "The reference needs a namespace.", Store: make(at(v1alpha1.AWSSpec{Auth: good}), none), Want: invalid, Message: keyID + "Secret aws needs a namespace"},
				"KeyNoNamespace":     {Why: "Each reference needs a namespace of its own.", Store: make(at(v1alpha1.AWSSpec{Auth: static(in(ns, goodID), goodKey)}), none), Want: invalid, Message: key + "Secret aws needs a namespace"},
				"AccountNoNamespace": {Why: "The reference to a ServiceAccount needs a namespace, too.", Store: make(at(v1alpha1.AWSSpec{Role: roles + "web", Auth: web("default")}), none), Want: invalid, Message: account + "ServiceAccount default needs a namespace"},
			}, readsOf(srv))

			// The login of a store with authenticationScope ManifestNamespace cannot be checked, so the
			// ExternalSecret reports its failure.
			s := make(at(v1alpha1.AWSSpec{Auth: static(in(ns, goodID), goodKey)}), perNamespace)
			s.SetName("scoped")
			suite.For(t).Create(s)
			es := operatortest.ExternalSecret(ns, "scoped", kind, "scoped", "shop/db", "password")
			suite.For(t).Create(es)
			controlplane.Eventually(t, func() string {
				return cmp.Diff(fmt.Sprintf("False SecretSyncedError Invalid: \"shop/db\" in %s \"scoped\": ", kind)+keyID+"Secret aws must not name a namespace with authenticationScope ManifestNamespace; remove the namespace", suite.For(t).Condition(es))
			})
		})
	}
}
