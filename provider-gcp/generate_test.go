package main

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
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

// in has the ServiceAccount of an auth be that of a namespace.
func in(namespace string, a *v1alpha1.GCPAuth) *v1alpha1.GCPAuth {
	a.WorkloadIdentity.ServiceAccountRef.Namespace = namespace
	return a
}

// TestGenerates has tokens made for objects, from the first to the end, by every way to log in.
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
	t.Setenv("HOME", t.TempDir()) // gcloud keeps a file there.
	suite.Namespace(t, ns, nil)
	suite.Secret(t, ns, "gcp", map[string]string{"key.json": string(srv.Key(reader))})
	suite.Start(t, "provider-gcp", manifests.Rights, newOperator)

	by := func(a *v1alpha1.GCPAuth) tokenSpec { return tokenSpec{Endpoint: srv.URL(), Auth: a} }
	cases := map[string]struct {
		generator provider.GeneratorObject
		caller    string
		// same is true where nobody gets a token of its own.
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
				Generator: tc.generator, Namespace: ns, Secrets: []string{"password"}, Plain: []string{"username", "expiry"}, Same: tc.same,
			})
			es := operatortest.Generated(ns, "whose", suite.Kind(t, tc.generator), tc.generator.GetName())
			suite.Create(t, es)
			if caller, _, _, ok := srv.TokenInfo(suite.Synced(t, es)["password"]); !ok || caller != tc.caller {
				t.Errorf("the token is good: %t, and of %q, want %q", ok, caller, tc.caller)
			}
			suite.End(t, es)
		})
	}
}

// TestBeside has a cluster generator log in as each namespace's own identity.
func TestBeside(t *testing.T) {
	const own, other = "beside-own", "beside-other"
	srv := startEmulator(t)
	for ns, account := range map[string]string{own: reader, other: "other@test-project.iam.gserviceaccount.com"} {
		suite.Namespace(t, ns, nil)
		suite.Secret(t, ns, "gcp", map[string]string{"key.json": string(srv.Key(account))})
	}
	suite.Start(t, "provider-gcp", manifests.Rights, newOperator)
	g := newClusterTokens("beside", tokenSpec{Endpoint: srv.URL(), Auth: byKey("")})
	g.Spec.AuthenticationScope = common.ScopeManifestNamespace
	suite.Create(t, g)
	for ns, account := range map[string]string{own: reader, other: "other@test-project.iam.gserviceaccount.com"} {
		es := operatortest.Generated(ns, "beside", "ClusterGCPAccessToken", "beside")
		suite.Create(t, es)
		if caller, _, _, ok := srv.TokenInfo(suite.Synced(t, es)["password"]); !ok || caller != account {
			t.Errorf("the token in %s is good: %t, and of %q, want %q", ns, ok, caller, account)
		}
	}
}

// TestReplacedInTime never has the Secret hold a token that has ended, though each lasts for seconds only.
func TestReplacedInTime(t *testing.T) {
	const ns = "replaced-in-time"
	srv := startEmulator(t, emulator.WithTokenLife(30*time.Second))
	suite.Namespace(t, ns, nil)
	suite.Secret(t, ns, "gcp", map[string]string{"key.json": string(srv.Key(reader))})
	suite.Start(t, "provider-gcp", manifests.Rights, newOperator)
	spec := tokenSpec{Endpoint: srv.URL(), Auth: byKey("")}
	suite.Create(t, newTokens(ns, "registry", spec))
	es := operatortest.Generated(ns, "registry", "GCPAccessToken", "registry")
	suite.Create(t, es)
	first := suite.Synced(t, es)["password"]
	controlplane.Eventually(t, func() string {
		token := suite.Data(t, ns, "registry")["password"]
		if _, _, _, ok := srv.TokenInfo(token); !ok {
			t.Fatal("the Secret holds a token that has ended")
		}
		if token == first {
			return "the token has not been replaced"
		}
		return ""
	})
	if _, _, _, ok := srv.TokenInfo(first); !ok {
		t.Error("the former token has ended already when the next one comes: who has read it is locked out")
	}
	suite.End(t, es)
}

// TestGenerateExample applies the example of the docs, but for the address and the namespace.
func TestGenerateExample(t *testing.T) {
	const ns = "registry"
	srv := startEmulator(t)
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{"system:serviceaccount:" + ns + ":puller"}})
	suite.Namespace(t, ns, nil)
	suite.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "puller"}})
	suite.Start(t, "provider-gcp", manifests.Rights, newOperator)
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
	data := suite.Synced(t, es)
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
		t.Error("the token is none")
	}
	suite.End(t, es)
}

// TestBadGenerators have objects wait, and say what is to be mended.
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
	suite.Namespace(t, ns, nil)
	suite.Secret(t, ns, "gcp", map[string]string{"key.json": string(good)})
	suite.Secret(t, ns, "deleted", map[string]string{"key.json": string(deleted)})
	suite.Start(t, "provider-gcp", manifests.Rights, newOperator)

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
	nobody := byToken("")
	nobody.WorkloadIdentity.ServiceAccountRef.Name = "nobody"
	made := func() []string {
		return suite.Made(t, &v1alpha1.GCPAccessToken{}, &v1alpha1.ClusterGCPAccessToken{})
	}
	bad := map[string]operatortest.BadStore{}
	for name, tc := range map[string]struct {
		why        string
		spec       tokenSpec
		want, says string
	}{
		"NoSecret":      {"The key is nowhere.", tokenSpec{Auth: file("none")}, invalid, key + "Secret bad-generators/none does not exist"},
		"Deleted":       {"The key was deleted.", tokenSpec{Auth: file("deleted")}, failed, key + "Google does not accept the key"},
		"Elsewhere":     {"A namespaced generator reads beside itself.", tokenSpec{Auth: byKey("bank")}, invalid, key + "Secret gcp must not name a namespace"},
		"NoAccount":     {"There is no such ServiceAccount.", tokenSpec{Auth: nobody}, invalid, workload + ".serviceAccountRef: ServiceAccount bad-generators/nobody does not exist"},
		"Impersonation": {"There is no such service account.", tokenSpec{Auth: byToken("nobody@test-project.iam.gserviceaccount.com")}, failed, workload + ".serviceAccountEmail: "},
		"Scope":         {"Google has no such scope.", tokenSpec{Auth: file("gcp"), Scopes: []string{"https://www.googleapis.com/oops"}}, invalid, "spec.scopes: Google knows no such scope"},
		"Endpoint":      {"Only Google and an emulator are asked.", tokenSpec{Auth: file("gcp"), Endpoint: "https://evil.example"}, invalid, "spec.endpoint: "},
		"Ambient":       {"Not everybody may have the operator's tokens.", tokenSpec{}, invalid, "spec.auth: "},
	} {
		bad[name] = operatortest.BadStore{Why: tc.why, Store: newTokens(ns, "", at(tc.spec)), Want: tc.want, Says: tc.says}
	}
	t.Run("GCPAccessToken", func(t *testing.T) { suite.BadStores(t, ns, bad, made) })
	bad = map[string]operatortest.BadStore{
		"NoNamespace": {Why: "Which namespace?", Store: newClusterTokens("", at(tokenSpec{Auth: byKey("")})), Want: invalid, Says: key + "Secret gcp needs a namespace"},
		"Missing":     {Why: "It is not there.", Store: newClusterTokens("", at(tokenSpec{Auth: byKey("nowhere")})), Want: invalid, Says: key + "Secret nowhere/gcp does not exist"},
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
