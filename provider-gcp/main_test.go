package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-gcp/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-gcp/emulator"
	"github.com/direct-secrets/direct-secrets/provider-gcp/manifests"
)

const (
	poolProvider = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/clusters/providers/prod"
	reader       = "reader@test-project.iam.gserviceaccount.com"
)

var suite operatortest.Suite

func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

func newStore(namespace, name string, spec v1alpha1.GCPSpec) *v1alpha1.GCPSecretManager {
	return &v1alpha1.GCPSecretManager{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.GCPSecretManagerSpec{GCPSpec: spec},
	}
}

func byKey(namespace string) *v1alpha1.GCPAuth {
	return &v1alpha1.GCPAuth{SecretRef: &v1alpha1.GCPSecretRef{
		SecretAccessKeySecretRef: common.SecretKeySelector{Namespace: namespace, Name: "gcp", Key: "key.json"},
	}}
}

func byToken(impersonate string) *v1alpha1.GCPAuth {
	return &v1alpha1.GCPAuth{WorkloadIdentity: &v1alpha1.WorkloadIdentity{
		ServiceAccountRef: &common.ServiceAccountSelector{Name: "default"},
		Audience:          poolProvider, ServiceAccountEmail: impersonate,
	}}
}

// byOperator logs in as the operator's own ServiceAccount.
func byOperator(audience string) *v1alpha1.GCPAuth {
	return &v1alpha1.GCPAuth{WorkloadIdentity: &v1alpha1.WorkloadIdentity{
		OperatorServiceAccount: &common.OperatorServiceAccount{Audience: audience}, Audience: poolProvider,
	}}
}

func TestCRD(t *testing.T) {
	ownAnnotated, ownAndToken, noAccount := byOperator(poolProvider), byOperator(poolProvider), byToken("")
	ownAnnotated.WorkloadIdentity.ServiceAccountEmailFrom = v1alpha1.EmailFromAnnotation
	ownAndToken.WorkloadIdentity.ServiceAccountRef = byToken("").WorkloadIdentity.ServiceAccountRef
	noAccount.WorkloadIdentity.ServiceAccountRef = nil
	both, bad := byKey(""), byToken("no email")
	both.WorkloadIdentity = byToken("").WorkloadIdentity
	elsewhere, annotated, twice, label := byToken(""), byToken(""), byToken(reader), byToken("")
	annotated.WorkloadIdentity.ServiceAccountEmailFrom, twice.WorkloadIdentity.ServiceAccountEmailFrom = v1alpha1.EmailFromAnnotation, v1alpha1.EmailFromAnnotation
	label.WorkloadIdentity.ServiceAccountEmailFrom = "Label"
	elsewhere.WorkloadIdentity.Audience = "https://evil.example"
	cases := map[string]struct {
		reason string
		spec   v1alpha1.GCPSpec
		want   string // part of the error
	}{
		"Project":    {"A project is enough, and the login is the operator's.", v1alpha1.GCPSpec{ProjectID: "p"}, ""},
		"NoProject":  {"A missing project is rejected.", v1alpha1.GCPSpec{}, "spec.projectID"},
		"Domain":     {"A project id with a domain is accepted.", v1alpha1.GCPSpec{ProjectID: "example.com:shop"}, ""},
		"Slash":      {"A project with other characters is rejected, because it becomes part of a name.", v1alpha1.GCPSpec{ProjectID: "p/secrets/x"}, "spec.projectID"},
		"Everything": {"All fields together are valid.", v1alpha1.GCPSpec{ProjectID: "p", Location: "europe-west3", Endpoint: "https://gcp.example", Auth: byToken(reader)}, ""},
		"Key":        {"A key with a location is valid.", v1alpha1.GCPSpec{ProjectID: "p", Auth: byKey("")}, ""},
		"TwoAuths":   {"Two ways to log in are rejected.", v1alpha1.GCPSpec{ProjectID: "p", Auth: both}, "set either secretRef or workloadIdentity"},
		"NoAuth":     {"An empty auth is rejected.", v1alpha1.GCPSpec{ProjectID: "p", Auth: &v1alpha1.GCPAuth{}}, "set either secretRef or workloadIdentity"},
		"Location":   {"A location with other characters is rejected, because it becomes part of a host name.", v1alpha1.GCPSpec{ProjectID: "p", Location: "evil.example/"}, "spec.location"},
		"Endpoint":   {"An endpoint without a scheme is rejected.", v1alpha1.GCPSpec{ProjectID: "p", Endpoint: "gcp.example"}, "endpoint must be a URL"},
		"Audience":   {"An audience of another server is rejected.", v1alpha1.GCPSpec{ProjectID: "p", Auth: elsewhere}, "spec.auth.workloadIdentity.audience"},
		"Annotated":  {"The annotation of the ServiceAccount can name the service account.", v1alpha1.GCPSpec{ProjectID: "p", Auth: annotated}, ""},
		"TwoEmails":  {"Two sources of the service account are rejected.", v1alpha1.GCPSpec{ProjectID: "p", Auth: twice}, "set either serviceAccountEmail or serviceAccountEmailFrom"},
		"Own":        {"The operator's own ServiceAccount is accepted.", v1alpha1.GCPSpec{ProjectID: "p", Auth: byOperator(poolProvider)}, ""},
		"OwnBare":    {"The operator's own ServiceAccount needs an audience.", v1alpha1.GCPSpec{ProjectID: "p", Auth: byOperator("")}, "operatorServiceAccount.audience"},
		"OwnAndRef":  {"The operator's own ServiceAccount together with another one is rejected.", v1alpha1.GCPSpec{ProjectID: "p", Auth: ownAndToken}, "set exactly one of serviceAccountRef and operatorServiceAccount"},
		"NoAccount":  {"A workload identity needs a ServiceAccount.", v1alpha1.GCPSpec{ProjectID: "p", Auth: noAccount}, "set exactly one of serviceAccountRef and operatorServiceAccount"},
		"OwnEmail":   {"The annotations of the operator's own ServiceAccount are not read.", v1alpha1.GCPSpec{ProjectID: "p", Auth: ownAnnotated}, "serviceAccountEmailFrom needs serviceAccountRef"},
		"Label":      {"An unknown source of the service account is rejected.", v1alpha1.GCPSpec{ProjectID: "p", Auth: label}, "spec.auth.workloadIdentity.serviceAccountEmailFrom"},
		"Email":      {"An email with other characters is rejected, because it becomes part of a URL.", v1alpha1.GCPSpec{ProjectID: "p", Auth: bad}, "spec.auth.workloadIdentity.serviceAccountEmail"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.GCPSecretManagerSpec{GCPSpec: tc.spec}
			twin := &v1alpha1.ClusterGCPSecretManager{
				ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(name)},
				Spec:       v1alpha1.ClusterGCPSecretManagerSpec{GCPSecretManagerSpec: spec},
			}
			for _, o := range []client.Object{newStore("default", strings.ToLower(name), tc.spec), twin} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}

func TestGeneratorCRD(t *testing.T) {
	both := byKey("")
	both.WorkloadIdentity = byToken("").WorkloadIdentity
	scopes := func(s ...string) v1alpha1.GCPAccessTokenSpec { return v1alpha1.GCPAccessTokenSpec{Scopes: s} }
	everything := v1alpha1.GCPAccessTokenSpec{
		GeneratorSpec: common.GeneratorSpec{
			SourceSpec: common.SourceSpec{ValidationInterval: "1m"}, RotationInterval: "30m", KeepPrevious: true,
		},
		Scopes:   []string{"https://www.googleapis.com/auth/devstorage.read_only", "openid"},
		Endpoint: "http://127.0.0.1:8080", Auth: byToken(reader),
	}
	cases := map[string]struct {
		reason string
		spec   v1alpha1.GCPAccessTokenSpec
		want   string // part of the error
	}{
		"Empty":      {"An empty spec is valid.", v1alpha1.GCPAccessTokenSpec{}, ""},
		"Everything": {"All fields together are valid.", everything, ""},
		"TwoAuths":   {"Two ways to log in are rejected.", v1alpha1.GCPAccessTokenSpec{Auth: both}, "set either secretRef or workloadIdentity"},
		"NoAuth":     {"An empty auth is rejected.", v1alpha1.GCPAccessTokenSpec{Auth: &v1alpha1.GCPAuth{}}, "set either secretRef or workloadIdentity"},
		"Endpoint":   {"An endpoint without a scheme is rejected.", v1alpha1.GCPAccessTokenSpec{Endpoint: "127.0.0.1"}, "endpoint must be a URL"},
		"ManyScopes": {"Too many scopes are rejected.", scopes(slices.Repeat([]string{"openid"}, 21)...), "spec.scopes"},
		"EmptyScope": {"An empty scope is rejected.", scopes("openid", ""), "spec.scopes[1]"},
		"LongScope":  {"A scope that is too long is rejected.", scopes(strings.Repeat("a", 257)), "spec.scopes[0]"},
		"TwoScopes":  {"A scope with a space is rejected, because it would be two scopes.", scopes("openid email"), "spec.scopes[0]"},
		"Interval":   {"An invalid interval is rejected.", v1alpha1.GCPAccessTokenSpec{GeneratorSpec: common.GeneratorSpec{RotationInterval: "soon"}}, "spec.rotationInterval"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			twin := &v1alpha1.ClusterGCPAccessToken{Spec: v1alpha1.ClusterGCPAccessTokenSpec{GCPAccessTokenSpec: tc.spec}}
			one := &v1alpha1.GCPAccessToken{Spec: tc.spec}
			one.Namespace = "default"
			for _, o := range []client.Object{one, twin} {
				o.SetName(strings.ToLower(name))
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}

func TestExamples(t *testing.T) {
	suite.For(t).Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	var docs [][]byte
	for _, name := range []string{"secretmanager.yaml", "workloadidentity.yaml", "accesstoken.yaml"} {
		docs = append(docs, bytes.Split(operatortest.Example(t, manifests.Examples, name), []byte("\n---\n"))...)
	}
	for _, doc := range docs {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() != "Namespace" { // A dry run would not create the namespace for the other objects.
			suite.For(t).Create(o, client.DryRunAll, client.FieldValidation("Strict"))
		}
	}
	if len(docs) != 7 {
		t.Errorf("%d documents, want 7", len(docs))
	}
}

// startEmulator starts an emulator and stops it when the test ends.
func startEmulator(t *testing.T, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // The test does not depend on a clean stop.
	return srv
}

func TestProvider(t *testing.T) {
	const subject = "system:serviceaccount:orders:default"
	srv := startEmulator(t)
	srv.AddProvider(emulator.Provider{Audience: poolProvider, Subjects: []string{subject}})
	srv.AddServiceAccount(reader, subject)
	srv.Put("orders-db", []byte(`{"user":"u","password":"one"}`))

	suite.For(t).Namespace("orders", map[string]string{"team": "orders"})
	suite.For(t).In("orders").Source("gcp", map[string]string{"key.json": string(srv.Key(reader))})
	spec := v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: byKey("")}
	suite.For(t).Create(newStore("orders", "by-key", spec))
	suite.For(t).Create(&v1alpha1.ClusterGCPSecretManager{
		ObjectMeta: metav1.ObjectMeta{Name: "shared"},
		Spec: v1alpha1.ClusterGCPSecretManagerSpec{
			GCPSecretManagerSpec: v1alpha1.GCPSecretManagerSpec{GCPSpec: v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject, Endpoint: srv.URL(), Auth: byKey("orders")}},
			ClusterStoreSpec: common.ClusterStoreSpec{Conditions: []common.StoreCondition{{
				NamespaceCondition: common.NamespaceCondition{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "orders"}}},
				AllowedKeys:        []string{"${namespace}-*"},
			}}},
		},
	})
	spec.Auth = byToken("")
	suite.For(t).Create(newStore("orders", "by-token", spec))
	spec.Auth = byToken(reader)
	suite.For(t).Create(newStore("orders", "by-impersonation", spec))
	spec.Auth = byToken("unknown@test-project.iam.gserviceaccount.com")
	suite.For(t).Create(newStore("orders", "unknown", spec))
	suite.For(t).Create(newStore("orders", "ambient", v1alpha1.GCPSpec{ProjectID: emulator.DefaultProject}))

	suite.Start(t, "provider-gcp", manifests.Permissions, newOperator)
	refs := map[string]string{"by-key": "GCPSecretManager", "by-token": "GCPSecretManager", "by-impersonation": "GCPSecretManager", "shared": "ClusterGCPSecretManager"}
	for name, kind := range refs {
		suite.For(t).Create(operatortest.ExternalSecret("orders", name, kind, name, "orders-db", "password"))
	}
	for name := range refs {
		controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.For(t).In("orders").Data(name)["password"]) })
	}
	for _, s := range []string{"by-key", "by-token", "by-impersonation"} {
		controlplane.Eventually(t, func() string {
			return cmp.Diff("True Valid", suite.For(t).Ready(newStore("orders", s, v1alpha1.GCPSpec{})))
		})
	}
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.For(t).Ready(&v1alpha1.ClusterGCPSecretManager{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("False AuthFailed", suite.For(t).Ready(newStore("orders", "unknown", v1alpha1.GCPSpec{})))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("False InvalidSpec", suite.For(t).Ready(newStore("orders", "ambient", v1alpha1.GCPSpec{})))
	})
}
