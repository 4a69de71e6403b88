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
	corev1 "k8s.io/api/core/v1"
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

// annotated returns a ServiceAccount whose annotation names a role.
func annotated(namespace, name, role string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"eks.amazonaws.com/role-arn": role}}}
}

// TestAnnotations logs in as the role that the annotations of ServiceAccounts name. A changed annotation is a new login without a restart.
func TestAnnotations(t *testing.T) {
	const ns, bank, roles = "wages", "wages-bank", "arn:aws:iam::000000000000:role/"
	trusting := func(namespace string) emulator.Role {
		return emulator.Role{ARN: roles + namespace, WebIdentities: []emulator.WebIdentity{{Subject: "system:serviceaccount:" + namespace + ":annotated", Audience: "sts.amazonaws.com"}}}
	}
	next := trusting(ns)
	next.ARN = roles + "next"
	srv := startEmulator(t, emulator.WithRoles(trusting(ns), trusting(bank), next))
	srv.Put("wages-db", []byte(`{"password":"one"}`))
	for _, namespace := range []string{ns, bank} {
		suite.For(t).Namespace(namespace, nil)
	}
	suite.For(t).Create(annotated(ns, "annotated", roles+"unknown"))
	suite.For(t).Create(annotated(bank, "annotated", roles+bank))
	spec := func(namespace string) v1alpha1.AWSSpec {
		return v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Namespace: namespace, Name: "annotated"}}}
	}
	suite.For(t).Create(newStore(ns, "annotated", spec("")))
	shared := clusterStores["ClusterAWSSecretsManager"](spec(bank), common.ClusterStoreSpec{})
	shared.SetName("annotated")
	suite.For(t).Create(shared)
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)
	own := operatortest.ExternalSecret(ns, "own", "AWSSecretsManager", "annotated", "wages-db", "password")
	suite.For(t).Create(own)
	suite.For(t).Create(operatortest.ExternalSecret(ns, "shared", "ClusterAWSSecretsManager", "annotated", "wages-db", "password"))
	password := func(name, want string) {
		t.Helper()
		controlplane.Eventually(t, func() string { return cmp.Diff(want, suite.For(t).In(ns).Data(name)["password"]) })
	}
	password("shared", "one")
	controlplane.Eventually(t, func() string {
		return cmp.Diff("False "+common.ReasonStoreAuthFailed, suite.For(t).Ready(newStore(ns, "annotated", v1alpha1.AWSSpec{})))
	})
	account := annotated(ns, "annotated", "")
	annotate := func(role string) {
		suite.For(t).Update(account, func() { account.Annotations["eks.amazonaws.com/role-arn"] = roles + role })
	}
	annotate(ns)
	password("own", "one")
	annotate("next")
	controlplane.Eventually(t, func() string {
		all := srv.Sessions()
		return cmp.Diff(next.ARN, all[len(all)-1].RoleARN)
	})
	srv.Put("wages-db", []byte(`{"password":"two"}`))
	suite.For(t).Refresh(own, "1")
	password("own", "two")
}

// TestOwnAccount logs in as the operator's own ServiceAccount, with a token for the audience that a cluster store names. Such a store is
// refused with an audience of the API server, and a namespaced store always.
func TestOwnAccount(t *testing.T) {
	const (
		ns      = "own-account"
		role    = "arn:aws:iam::000000000000:role/operator"
		own     = "spec.auth.operatorServiceAccount: "
		invalid = common.ReasonStoreInvalidSpec
	)
	srv := startEmulator(t, emulator.WithRoles(emulator.Role{ARN: role, WebIdentities: []emulator.WebIdentity{
		{Subject: "system:serviceaccount:provider-aws:provider-aws", Audience: "sts.amazonaws.com"},
	}}))
	srv.Put("own-db", []byte(`{"password":"one"}`))
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)
	spec := func(audience string) v1alpha1.AWSSpec {
		return v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Role: role, Auth: byOperator(audience)}
	}
	shared := func(audience string) provider.ClusterObject {
		return clusterStores["ClusterAWSSecretsManager"](spec(audience), common.ClusterStoreSpec{})
	}
	reads := func() []string {
		all := readsOf(srv)()
		for _, s := range srv.Sessions() {
			all = append(all, s.RoleARN)
		}
		return all
	}
	suite.BadStores(t, ns, map[string]operatortest.BadStore{
		"Namespaced": {Why: "A namespaced store does not get the operator's own ServiceAccount.", Store: newStore(ns, "", spec("sts.amazonaws.com")), Want: invalid, Message: own + "a namespaced store is not allowed"},
		"APIServer":  {Why: "A token that the API server accepts is never sent.", Store: shared("https://kubernetes.default.svc"), Want: invalid, Message: own + "the API server accepts tokens for audience"},
	}, reads)

	s := shared("sts.amazonaws.com")
	s.SetName(ns)
	suite.For(t).Create(s)
	suite.For(t).Create(operatortest.ExternalSecret(ns, "db", "ClusterAWSSecretsManager", ns, "own-db", "password"))
	suite.For(t).In(ns).WantSecret("db", "password", "one")
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
	suite.For(t).Create(annotated(ns, "named", "web"))
	suite.For(t).Create(annotated(ns, "stealing", roles+"elsewhere"))
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
		"Bare":         {"The ServiceAccount has no role.", v1alpha1.AWSSpec{Auth: web("default")}, invalid, "spec.role: is not set, and ServiceAccount default has no annotation eks.amazonaws.com/role-arn"},
		"NoARN":        {"The annotation of the ServiceAccount is no role.", v1alpha1.AWSSpec{Auth: web("named")}, invalid, account + "annotation eks.amazonaws.com/role-arn of ServiceAccount named is not valid"},
		"Elsewhere":    {"A namespaced store reads only annotations of ServiceAccounts in its own namespace.", v1alpha1.AWSSpec{Auth: &v1alpha1.AWSAuth{ServiceAccountRef: &common.ServiceAccountSelector{Namespace: "bank", Name: "default"}}}, invalid, account + "ServiceAccount default must not name a namespace"},
		"Stolen":       {"The annotation names a role that trusts the ServiceAccount of another namespace.", v1alpha1.AWSSpec{Auth: web("stealing")}, failed, account + "annotation eks.amazonaws.com/role-arn: cannot assume role " + roles + "elsewhere"},
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
