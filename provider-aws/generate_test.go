package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-aws/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
	"github.com/direct-secrets/direct-secrets/provider-aws/manifests"
)

func newECR(namespace, name string, s v1alpha1.AWSSpec) *v1alpha1.ECRAuthorizationToken {
	return &v1alpha1.ECRAuthorizationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.ECRAuthorizationTokenSpec{AWSSpec: s},
	}
}

func newClusterECR(name string, s v1alpha1.AWSSpec, conditions ...common.NamespaceCondition) *v1alpha1.ClusterECRAuthorizationToken {
	g := &v1alpha1.ClusterECRAuthorizationToken{Spec: v1alpha1.ClusterECRAuthorizationTokenSpec{ECRAuthorizationTokenSpec: v1alpha1.ECRAuthorizationTokenSpec{AWSSpec: s}}}
	g.Name, g.Spec.Conditions = name, conditions
	return g
}

func newSTS(namespace, name string, s v1alpha1.AWSSpec) *v1alpha1.STSSessionToken {
	return &v1alpha1.STSSessionToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.STSSessionTokenSpec{AWSSpec: s},
	}
}

func newClusterSTS(name string, s v1alpha1.AWSSpec, conditions ...common.NamespaceCondition) *v1alpha1.ClusterSTSSessionToken {
	g := &v1alpha1.ClusterSTSSessionToken{Spec: v1alpha1.ClusterSTSSessionTokenSpec{STSSessionTokenSpec: v1alpha1.STSSessionTokenSpec{AWSSpec: s}}}
	g.Name, g.Spec.Conditions = name, conditions
	return g
}

// in returns an auth whose references all name a namespace.
func in(namespace string, a *v1alpha1.AWSAuth) *v1alpha1.AWSAuth {
	if a.SecretRef != nil {
		a.SecretRef.AccessKeyIDSecretRef.Namespace, a.SecretRef.SecretAccessKeySecretRef.Namespace = namespace, namespace
	}
	if a.ServiceAccountRef != nil {
		a.ServiceAccountRef.Namespace = namespace
	}
	return a
}

// trusting returns a role that a ServiceAccount can assume.
func trusting(role, namespace, account string) emulator.Role {
	return emulator.Role{ARN: role, WebIdentities: []emulator.WebIdentity{
		{Subject: "system:serviceaccount:" + namespace + ":" + account, Audience: "sts.amazonaws.com"},
	}}
}

// ownerOf returns the owner of an access key, as reported by AWS.
func ownerOf(t *testing.T, srv *emulator.Server, id, key, token string) string {
	t.Helper()
	out, err := sts.NewFromConfig(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(srv.URL()), Credentials: credentials.NewStaticCredentialsProvider(id, key, token),
	}).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	return *out.Arn
}

// TestGenerates generates logins and access keys for objects, from the first value to the deletion.
func TestGenerates(t *testing.T) {
	const ns, role = "generates", "arn:aws:iam::000000000000:role/generates"
	srv := startEmulator(t, emulator.WithRoles(trusting(role, ns, "default")))
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("aws", accessKey)
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)

	spec := func(a *v1alpha1.AWSAuth, role string) v1alpha1.AWSSpec {
		return v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: a, Role: role}
	}
	login := operatortest.Generation{Secrets: []string{"password"}, Plain: []string{"username", "proxy_endpoint", "expires_at"}}
	key := operatortest.Generation{Secrets: []string{"access_key_id", "secret_access_key", "session_token"}, Plain: []string{"expiration"}}
	const user, session = "arn:aws:iam::000000000000:user/test", "arn:aws:sts::000000000000:assumed-role/generates/"
	cases := map[string]struct {
		generator provider.GeneratorObject
		makes     operatortest.Generation
		// owner is the start of the ARN of the access key's owner.
		owner string
	}{
		"ECR":            {newECR(ns, "ecr", spec(byKey(), "")), login, ""},
		"ECRRole":        {newECR(ns, "ecr-role", spec(byToken(), role)), login, ""},
		"ClusterECR":     {newClusterECR("ecr", spec(in(ns, byKey()), "")), login, ""},
		"ClusterECRRole": {newClusterECR("ecr-role", spec(in(ns, byToken()), role)), login, ""},
		"STS":            {newSTS(ns, "sts", spec(byKey(), "")), key, user},
		"STSRole":        {newSTS(ns, "sts-role", spec(byToken(), role)), key, session},
		"ClusterSTS":     {newClusterSTS("sts", spec(in(ns, byKey()), "")), key, user},
		"ClusterSTSRole": {newClusterSTS("sts-role", spec(in(ns, byToken()), role)), key, session},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.makes.Generator, tc.makes.Namespace, tc.makes.Service = tc.generator, ns, emulator.Name
			suite.Generates(t, tc.makes)
			if tc.owner == "" {
				return
			}
			es := operatortest.Generated(ns, "whose", suite.For(t).Kind(tc.generator), tc.generator.GetName())
			suite.For(t).Create(es)
			data := suite.For(t).Synced(es)
			if got := ownerOf(t, srv, data["access_key_id"], data["secret_access_key"], data["session_token"]); !strings.HasPrefix(got, tc.owner) {
				t.Errorf("the access key is of %q, want %q", got, tc.owner)
			}
			suite.For(t).End(es)
		})
	}
}

// TestGenerateExamples applies the examples of the docs, with another address and namespace.
func TestGenerateExamples(t *testing.T) {
	const ns, account = "images", "111122223333"
	const roles = "arn:aws:iam::" + account + ":role/"
	srv := startEmulator(t, emulator.WithRegion("eu-central-1"), emulator.WithAccount(account),
		emulator.WithRoles(trusting(roles+"shop-images", ns, "shop"), trusting(roles+"shop-reports", ns, "shop")))
	suite.For(t).Namespace(ns, nil)
	suite.For(t).Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop"}})
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)
	for _, name := range []string{"ecrauthorizationtoken.yaml", "stssessiontoken.yaml"} {
		suite.Apply(t, operatortest.Example(t, manifests.Examples, name), func(o *unstructured.Unstructured) {
			if o.GetNamespace() != "" {
				o.SetNamespace(ns)
			}
			if o.GroupVersionKind().Group != v1alpha1.Group {
				return
			}
			if err := unstructured.SetNestedField(o.Object, srv.URL(), "spec", "endpoint"); err != nil {
				t.Fatal(err)
			}
		})
	}

	registry := operatortest.Generated(ns, "registry", "", "")
	data := suite.For(t).Synced(registry)
	type pull struct{ Username, Password, Auth string }
	var got struct{ Auths map[string]pull }
	if err := json.Unmarshal([]byte(data[corev1.DockerConfigJsonKey]), &got); err != nil || len(data) != 1 {
		t.Fatalf("the Secret has %d keys, and its %s: %v", len(data), corev1.DockerConfigJsonKey, err)
	}
	const host = account + ".dkr.ecr.eu-central-1.amazonaws.com"
	password := got.Auths[host].Password
	want := map[string]pull{host: {Username: "AWS", Password: password, Auth: base64.StdEncoding.EncodeToString([]byte("AWS:" + password))}}
	if diff := cmp.Diff(want, got.Auths); diff != "" || password == "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	reports := operatortest.Generated(ns, "reports", "", "")
	data = suite.For(t).Synced(reports)
	owner := ownerOf(t, srv, data["AWS_ACCESS_KEY_ID"], data["AWS_SECRET_ACCESS_KEY"], data["AWS_SESSION_TOKEN"])
	if want := "arn:aws:sts::" + account + ":assumed-role/shop-reports/"; !strings.HasPrefix(owner, want) || len(data) != 3 {
		t.Errorf("%d keys, and the access key is of %q, want %q", len(data), owner, want)
	}
	suite.For(t).End(registry)
	suite.For(t).End(reports)
}

// TestBadGenerators checks that objects wait, and that their condition names the fix.
func TestBadGenerators(t *testing.T) {
	const (
		ns      = "bad-generators"
		role    = "arn:aws:iam::000000000000:role/"
		keyID   = "spec.auth.secretRef.accessKeyIDSecretRef: "
		key     = "spec.auth.secretRef.secretAccessKeySecretRef: "
		invalid = common.ReasonStoreInvalidSpec
		failed  = common.ReasonStoreAuthFailed
	)
	srv := startEmulator(t,
		emulator.WithRoles(trusting(role+"other", "bank", "default"), trusting(role+"mine", ns, "default")),
		emulator.WithCredentials(
			emulator.Credential{AccessKeyID: "test", SecretAccessKey: "test", UserName: "test"},
			emulator.Credential{AccessKeyID: "meek", SecretAccessKey: "meek", UserName: "meek", Deny: []emulator.Deny{{Action: "ecr:*"}}},
		))
	suite.For(t).Namespace(ns, nil)
	for name, data := range map[string]map[string]string{
		"aws": accessKey, "unknown": {"id": "AKIAUNKNOWN", "key": "c4n4ry"}, "wrong": {"id": "test", "key": "c4n4ry"}, "meek": {"id": "meek", "key": "meek"},
	} {
		suite.For(t).In(ns).Source(name, data)
	}
	suite.Start(t, "provider-aws", manifests.Permissions, newOperator)

	of := func(secret string) *v1alpha1.AWSAuth {
		a := byKey()
		a.SecretRef.AccessKeyIDSecretRef.Name, a.SecretRef.SecretAccessKeySecretRef.Name = secret, secret
		return a
	}
	spec := func(a *v1alpha1.AWSAuth) v1alpha1.AWSSpec {
		return v1alpha1.AWSSpec{Region: "us-east-1", Endpoint: srv.URL(), Auth: a}
	}
	nowhere, assumed := spec(of("aws")), spec(byToken())
	nowhere.Region, assumed.Role = "", role+"other"

	both := map[string]struct {
		why               string
		spec              v1alpha1.AWSSpec
		want, wantMessage string
	}{
		"Region":    {"A missing region is reported.", nowhere, invalid, "spec.region: required with spec.auth"},
		"NoSecret":  {"The Secret of the access key does not exist.", spec(of("none")), invalid, keyID + "Secret bad-generators/none does not exist"},
		"Unknown":   {"AWS does not know the access key id.", spec(of("unknown")), failed, keyID + "AWS does not know the access key id"},
		"Wrong":     {"The secret access key is wrong.", spec(of("wrong")), failed, key + "the secret access key does not match the access key id"},
		"Elsewhere": {"A namespaced generator reads only Secrets in its own namespace.", spec(in("bank", byKey())), invalid, keyID + "Secret aws must not name a namespace"},
		"Role":      {"The role does not trust the user.", assumed, failed, "spec.role: cannot assume role " + role + "other"},
		"Ambient":   {"A namespaced generator does not get the operator's own identity.", spec(nil), invalid, "spec.auth: "},
	}
	all := map[string]map[string]operatortest.BadStore{
		"ECRAuthorizationToken": {
			"Permission": {Why: "The condition names the missing permission.", Store: newECR(ns, "", spec(of("meek"))), Want: failed, Message: "ecr:GetAuthorizationToken; allow it in a policy"},
		},
		"STSSessionToken": {},
	}
	for name, tc := range both {
		all["ECRAuthorizationToken"][name] = operatortest.BadStore{Why: tc.why, Store: newECR(ns, "", tc.spec), Want: tc.want, Message: tc.wantMessage}
		all["STSSessionToken"][name] = operatortest.BadStore{Why: tc.why, Store: newSTS(ns, "", tc.spec), Want: tc.want, Message: tc.wantMessage}
	}
	for kind, make := range map[string]func(v1alpha1.AWSSpec) provider.Object{
		"ClusterECRAuthorizationToken": func(s v1alpha1.AWSSpec) provider.Object { return newClusterECR("", s) },
		"ClusterSTSSessionToken":       func(s v1alpha1.AWSSpec) provider.Object { return newClusterSTS("", s) },
	} {
		all[kind] = map[string]operatortest.BadStore{
			"NoNamespace": {Why: "The reference needs a namespace.", Store: make(spec(of("aws"))), Want: invalid, Message: keyID + "Secret aws needs a namespace"},
			"Missing":     {Why: "The Secret does not exist in that namespace.", Store: make(spec(in("nowhere", byKey()))), Want: invalid, Message: keyID + "Secret nowhere/aws does not exist"},
		}
	}
	made := func() []string {
		return suite.Made(t, &v1alpha1.ECRAuthorizationToken{}, &v1alpha1.ClusterECRAuthorizationToken{}, &v1alpha1.STSSessionToken{}, &v1alpha1.ClusterSTSSessionToken{})
	}
	for kind, bad := range all {
		t.Run(kind, func(t *testing.T) { suite.BadStores(t, ns, bad, made) })
	}

	for _, g := range []provider.GeneratorObject{newECR(ns, "ungated", spec(of("unknown"))), newSTS(ns, "ungated", spec(of("unknown")))} {
		kind := suite.For(t).Kind(g)
		t.Run("Ungated"+kind, func(t *testing.T) {
			suite.Ungated(t, ns, g, fmt.Sprintf("Denied: %s %q: %sAWS does not know the access key id", kind, "ungated", keyID))
		})
	}
	// The validation opens only a short session, so the ExternalSecret reports a duration that is too long.
	t.Run("Duration", func(t *testing.T) {
		g := newSTS(ns, "long", assumed)
		g.Spec.Role, g.Spec.RequestParameters = role+"mine", &v1alpha1.STSRequestParameters{SessionDuration: 7200}
		suite.For(t).Create(g)
		es := operatortest.Generated(ns, "long", "STSSessionToken", "long")
		suite.For(t).Create(es)
		want := `False SecretSyncedError Invalid: STSSessionToken "long": spec.role: cannot assume role ` + role + "mine: AWS rejects spec.requestParameters.sessionDuration"
		controlplane.Eventually(t, func() string {
			if condition := suite.For(t).Condition(es); !strings.HasPrefix(condition, want) {
				return cmp.Diff(want, condition)
			}
			return ""
		})
	})
	other := common.NamespaceCondition{Namespaces: []string{"elsewhere"}}
	for _, g := range []provider.ClusterGeneratorObject{newClusterECR("elsewhere", spec(in(ns, byKey())), other), newClusterSTS("elsewhere", spec(in(ns, byKey())), other)} {
		t.Run("Excluded"+suite.For(t).Kind(g), func(t *testing.T) { suite.Excludes(t, ns, g) })
	}
}
