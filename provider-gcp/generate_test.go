package main

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
)

type tokenSpec = v1alpha1.GCPAccessTokenSpec

func newTokens(namespace, name string, s tokenSpec) *v1alpha1.GCPAccessToken {
	return &v1alpha1.GCPAccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: s}
}

func newClusterTokens(name string, s tokenSpec, conditions ...common.NamespaceCondition) *v1alpha1.ClusterGCPAccessToken {
	g := &v1alpha1.ClusterGCPAccessToken{Spec: v1alpha1.ClusterGCPAccessTokenSpec{GCPAccessTokenSpec: s}}
	g.Name, g.Spec.Conditions = name, conditions
	return g
}

// in returns an auth whose ServiceAccount is in a namespace.
func in(namespace string, a *v1alpha1.GCPAuth) *v1alpha1.GCPAuth {
	a.WorkloadIdentity.ServiceAccountRef.Namespace = namespace
	return a
}

// TestGenerates generates tokens with every way to log in, from the first value to the deletion.
func TestGenerates(t *testing.T) {
	const (
		ns      = "generates"
		subject = "system:serviceaccount:" + ns + ":default"
		machine = "machine@test-project.iam.gserviceaccount.com"
	)
	srv := startEmulator(t, emulator.WithMachine(machine))
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{subject}})
	srv.AddServiceAccount(reader, subject)
	t.Setenv("GCE_METADATA_HOST", srv.URL()[len("http://"):])
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir()) // gcloud stores its credentials file there.
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("gcp", map[string]string{"key.json": string(srv.Key(reader))})
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)

	by := func(a *v1alpha1.GCPAuth) tokenSpec { return tokenSpec{Endpoint: srv.URL(), Auth: a} }
	cases := map[string]struct {
		generator provider.GeneratorObject
		caller    string
		// same is set if all objects get the same token.
		same bool
	}{
		"Key":                  {newTokens(ns, "key", by(byKey(""))), reader, false},
		"Workload":             {newTokens(ns, "workload", by(byToken(""))), subject, false},
		"Impersonation":        {newTokens(ns, "impersonation", by(byToken(reader))), reader, false},
		"ClusterKey":           {newClusterTokens("key", by(byKey(ns))), reader, false},
		"ClusterWorkload":      {newClusterTokens("workload", by(in(ns, byToken("")))), subject, false},
		"ClusterImpersonation": {newClusterTokens("impersonation", by(in(ns, byToken(reader)))), reader, false},
		"ClusterMachine":       {newClusterTokens("machine", by(nil)), machine, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			suite.Generates(t, operatortest.Generation{
				Generator: tc.generator, Namespace: ns, Service: emulator.Name, Secrets: []string{"password"}, Plain: []string{"username", "expiry"}, Same: tc.same,
			})
			es := operatortest.Generated(ns, "whose", suite.For(t).Kind(tc.generator), tc.generator.GetName())
			suite.For(t).Create(es)
			if caller, _, _, ok := srv.TokenInfo(suite.For(t).Synced(es)["password"]); !ok || caller != tc.caller {
				t.Errorf("the token is good: %t, and of %q, want %q", ok, caller, tc.caller)
			}
			suite.For(t).End(es)
		})
	}
}

// TestLoginPerNamespace makes a cluster generator log in with the identity of each namespace.
func TestLoginPerNamespace(t *testing.T) {
	const own, other = "per-namespace-own", "per-namespace-other"
	srv := startEmulator(t)
	for ns, account := range map[string]string{own: reader, other: "other@test-project.iam.gserviceaccount.com"} {
		suite.For(t).Namespace(ns, nil)
		suite.For(t).In(ns).Source("gcp", map[string]string{"key.json": string(srv.Key(account))})
	}
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)
	g := newClusterTokens("per-namespace", tokenSpec{Endpoint: srv.URL(), Auth: byKey("")})
	g.Spec.AuthenticationScope = common.ScopeManifestNamespace
	suite.For(t).Create(g)
	for ns, account := range map[string]string{own: reader, other: "other@test-project.iam.gserviceaccount.com"} {
		es := operatortest.Generated(ns, "per-namespace", "ClusterGCPAccessToken", "per-namespace")
		suite.For(t).Create(es)
		if caller, _, _, ok := srv.TokenInfo(suite.For(t).Synced(es)["password"]); !ok || caller != account {
			t.Errorf("the token in %s is good: %t, and of %q, want %q", ns, ok, caller, account)
		}
	}
}

// TestGenerateExample applies the example of the docs, with another address and namespace.
func TestGenerateExample(t *testing.T) {
	const ns = "registry"
	srv := startEmulator(t)
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{"system:serviceaccount:" + ns + ":puller"}})
	suite.For(t).Namespace(ns, nil)
	suite.For(t).Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "puller"}})
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)
	suite.Apply(t, operatortest.Example(t, manifests.Examples, "accesstoken.yaml"), func(o *unstructured.Unstructured) {
		o.SetNamespace(ns)
		if o.GetKind() != "GCPAccessToken" {
			return
		}
		if err := unstructured.SetNestedField(o.Object, srv.URL(), "spec", "endpoint"); err != nil {
			t.Fatal(err)
		}
	})
	es := operatortest.Generated(ns, "registry", "", "")
	data := suite.For(t).Synced(es)
	type login struct{ Username, Password, Auth string }
	var got struct{ Auths map[string]login }
	if err := json.Unmarshal([]byte(data[corev1.DockerConfigJsonKey]), &got); err != nil || len(data) != 1 {
		t.Fatalf("the Secret has %d keys, and its %s: %v", len(data), corev1.DockerConfigJsonKey, err)
	}
	token := got.Auths["europe-west3-docker.pkg.dev"].Password
	want := map[string]login{"europe-west3-docker.pkg.dev": {
		Username: "oauth2accesstoken", Password: token, Auth: base64.StdEncoding.EncodeToString([]byte("oauth2accesstoken:" + token)),
	}}
	if diff := cmp.Diff(want, got.Auths); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, _, _, ok := srv.TokenInfo(token); !ok {
		t.Error("the token is not valid")
	}
	suite.For(t).End(es)
}

// TestBadGenerators checks that objects wait, and that their condition names the fix.
func TestBadGenerators(t *testing.T) {
	const (
		ns       = "bad-generators"
		key      = "spec.auth.secretRef.secretAccessKeySecretRef: "
		workload = "spec.auth.workloadIdentity"
		invalid  = common.ReasonStoreInvalidSpec
		failed   = common.ReasonStoreAuthFailed
	)
	srv := startEmulator(t)
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{"system:serviceaccount:" + ns + ":default"}})
	good, deleted := srv.Key(reader), srv.Key("deleted@test-project.iam.gserviceaccount.com")
	srv.RevokeKeys("deleted@test-project.iam.gserviceaccount.com")
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("gcp", map[string]string{"key.json": string(good)})
	suite.For(t).In(ns).Source("deleted", map[string]string{"key.json": string(deleted)})
	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)

	file := func(secret string) *v1alpha1.GCPAuth {
		a := byKey("")
		a.SecretRef.SecretAccessKeySecretRef.Name = secret
		return a
	}
	at := func(s tokenSpec) tokenSpec {
		if s.Endpoint == "" {
			s.Endpoint = srv.URL()
		}
		return s
	}
	missing := byToken("")
	missing.WorkloadIdentity.ServiceAccountRef.Name = "missing"
	made := func() []string {
		return suite.Made(t, &v1alpha1.GCPAccessToken{}, &v1alpha1.ClusterGCPAccessToken{})
	}
	bad := map[string]operatortest.BadStore{}
	for name, tc := range map[string]struct {
		why               string
		spec              tokenSpec
		want, wantMessage string
	}{
		"NoSecret":  {"The Secret of the key does not exist.", tokenSpec{Auth: file("none")}, invalid, key + "Secret bad-generators/none does not exist"},
		"Deleted":   {"The key was deleted.", tokenSpec{Auth: file("deleted")}, failed, key + "Google does not accept the key"},
		"Elsewhere": {"A namespaced generator reads only Secrets in its own namespace.", tokenSpec{Auth: byKey("bank")}, invalid, key + "Secret gcp must not name a namespace"},
		"NoAccount": {"The ServiceAccount does not exist.", tokenSpec{Auth: missing}, invalid, workload + ".serviceAccountRef: ServiceAccount bad-generators/missing does not exist"},
		"Scope":     {"An unknown scope is reported.", tokenSpec{Auth: file("gcp"), Scopes: []string{"https://www.googleapis.com/oops"}}, invalid, "spec.scopes: the scope does not exist at Google"},
		"Endpoint":  {"An endpoint of another server is rejected.", tokenSpec{Auth: file("gcp"), Endpoint: "https://evil.example"}, invalid, "spec.endpoint: "},
		"Ambient":   {"A namespaced generator does not get the operator's own identity.", tokenSpec{}, invalid, "spec.auth: "},
	} {
		bad[name] = operatortest.BadStore{Why: tc.why, Store: newTokens(ns, "", at(tc.spec)), Want: tc.want, Message: tc.wantMessage}
	}
	t.Run("GCPAccessToken", func(t *testing.T) { suite.BadStores(t, ns, bad, made) })
	bad = map[string]operatortest.BadStore{
		"NoNamespace": {Why: "The reference needs a namespace.", Store: newClusterTokens("", at(tokenSpec{Auth: byKey("")})), Want: invalid, Message: key + "Secret gcp needs a namespace"},
	}
	t.Run("ClusterGCPAccessToken", func(t *testing.T) { suite.BadStores(t, ns, bad, made) })
	t.Run("Ungated", func(t *testing.T) {
		g := newTokens(ns, "ungated", at(tokenSpec{Auth: file("deleted")}))
		suite.Ungated(t, ns, g, `Denied: GCPAccessToken "ungated": `+key+"Google does not accept the key")
	})
	t.Run("Excluded", func(t *testing.T) {
		suite.Excludes(t, ns, newClusterTokens("elsewhere", at(tokenSpec{Auth: byKey(ns)}), common.NamespaceCondition{Namespaces: []string{"elsewhere"}}))
	})
}
