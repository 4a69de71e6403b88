package main

import (
	"bytes"
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
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
	"github.com/direct-secrets/direct-secrets/provider-azure/manifests"
)

const reader = "reader"

var suite operatortest.Suite

func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

func newStore(namespace, name string, spec v1alpha1.AzureSpec) *v1alpha1.AzureKeyVault {
	return &v1alpha1.AzureKeyVault{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.AzureKeyVaultSpec{AzureSpec: spec},
	}
}

func newClusterStore(name string, spec v1alpha1.AzureSpec, serves common.ClusterStoreSpec) *v1alpha1.ClusterAzureKeyVault {
	return &v1alpha1.ClusterAzureKeyVault{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.ClusterAzureKeyVaultSpec{AzureKeyVaultSpec: v1alpha1.AzureKeyVaultSpec{AzureSpec: spec}, ClusterStoreSpec: serves},
	}
}

// bySecret logs in with the client secret in the Secret azure.
func bySecret(namespace string) v1alpha1.AzureAuth {
	return v1alpha1.AzureAuth{ClientSecret: &v1alpha1.ClientSecret{
		Client: v1alpha1.Client{ClientID: reader}, ClientSecretRef: common.SecretKeySelector{Namespace: namespace, Name: "azure", Key: "secret"},
	}}
}

// byToken logs in with a token of the ServiceAccount default.
func byToken(namespace, clientID string) v1alpha1.AzureAuth {
	return v1alpha1.AzureAuth{ServiceAccountRef: &v1alpha1.FederatedServiceAccount{
		ServiceAccountSelector: common.ServiceAccountSelector{Namespace: namespace, Name: "default"}, ClientID: clientID,
	}}
}

// specOf returns the spec of a store of an emulator.
func specOf(srv *emulator.Server, auth v1alpha1.AzureAuth) v1alpha1.AzureSpec {
	return v1alpha1.AzureSpec{VaultURL: srv.URL(), AzureLogin: v1alpha1.AzureLogin{TenantID: emulator.DefaultTenant, Auth: auth}}
}

// startEmulator starts an emulator, in which reader has a client secret, and stops it when the test ends.
func startEmulator(t *testing.T, opts ...emulator.Option) *emulator.Server {
	t.Helper()
	srv, err := emulator.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // The test does not depend on a clean stop.
	srv.SetApp(reader, emulator.App{Secrets: []string{"s3cret"}})
	return srv
}

func put(t *testing.T, srv *emulator.Server, name, value string) {
	t.Helper()
	if _, err := srv.Put(name, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func TestCRD(t *testing.T) {
	good := v1alpha1.AzureSpec{VaultURL: "https://shop.vault.azure.net", AzureLogin: v1alpha1.AzureLogin{TenantID: "t", Auth: bySecret("")}}
	custom := &v1alpha1.CustomCloudConfig{ActiveDirectoryEndpoint: "https://login.example", KeyVaultDNSSuffix: "vault.example"}
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.AzureSpec)
		want   string // part of the error
	}{
		"Good":      {"A vault, a tenant and a client secret are enough.", func(*v1alpha1.AzureSpec) {}, ""},
		"Token":     {"A ServiceAccount with a client is valid.", func(s *v1alpha1.AzureSpec) { s.Auth = byToken("", "c") }, ""},
		"Annotated": {"A ServiceAccount can have the client and the tenant in its annotations.", func(s *v1alpha1.AzureSpec) { s.TenantID, s.Auth = "", byToken("", "") }, ""},
		"Client":    {"A client with other characters is rejected, because it becomes part of a request.", func(s *v1alpha1.AzureSpec) { s.Auth = byToken("", "c/../x") }, "spec.auth.serviceAccountRef.clientID"},
		"Machine": {"A managed identity needs no tenant.", func(s *v1alpha1.AzureSpec) {
			s.TenantID, s.Auth = "", v1alpha1.AzureAuth{ManagedIdentity: &v1alpha1.ManagedIdentity{}}
		}, ""},
		"Custom":      {"A custom cloud has its own addresses.", func(s *v1alpha1.AzureSpec) { s.Environment, s.CustomCloudConfig = v1alpha1.CustomEnvironment, custom }, ""},
		"URL":         {"A vault without a scheme is rejected.", func(s *v1alpha1.AzureSpec) { s.VaultURL = "shop.vault.azure.net" }, "vaultURL must be a URL"},
		"NoTenant":    {"A client secret without a tenant is rejected.", func(s *v1alpha1.AzureSpec) { s.TenantID = "" }, "set tenantID"},
		"Tenant":      {"A tenant with other characters is rejected, because it becomes part of a URL.", func(s *v1alpha1.AzureSpec) { s.TenantID = "t/../x" }, "spec.tenantID"},
		"Environment": {"An unknown cloud is rejected.", func(s *v1alpha1.AzureSpec) { s.Environment = "GermanCloud" }, "spec.environment"},
		"NoConfig":    {"A custom cloud without addresses is rejected.", func(s *v1alpha1.AzureSpec) { s.Environment = v1alpha1.CustomEnvironment }, "set customCloudConfig"},
		"NotCustom":   {"Addresses of a known cloud are rejected.", func(s *v1alpha1.AzureSpec) { s.CustomCloudConfig = custom }, "set customCloudConfig"},
		"Authority": {"An authority without a scheme is rejected.", func(s *v1alpha1.AzureSpec) {
			s.Environment, s.CustomCloudConfig = v1alpha1.CustomEnvironment, &v1alpha1.CustomCloudConfig{ActiveDirectoryEndpoint: "login", KeyVaultDNSSuffix: "vault.example"}
		}, "activeDirectoryEndpoint must be a URL"},
		"NoAuth":   {"An empty auth is rejected.", func(s *v1alpha1.AzureSpec) { s.Auth = v1alpha1.AzureAuth{} }, "set exactly one of"},
		"TwoAuths": {"Two ways to log in are rejected.", func(s *v1alpha1.AzureSpec) { s.Auth.ServiceAccountRef = byToken("", "c").ServiceAccountRef }, "set exactly one of"},
		"NoClient": {"A client secret without a client is rejected.", func(s *v1alpha1.AzureSpec) { s.Auth.ClientSecret.ClientID = "" }, "set either clientID or clientIDRef"},
		"TwoClients": {"Two clients are rejected.", func(s *v1alpha1.AzureSpec) {
			s.Auth.ClientSecret.ClientIDRef = &common.SecretKeySelector{Name: "azure", Key: "id"}
		}, "set either clientID or clientIDRef"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := good.DeepCopy()
			tc.change(spec)
			for _, o := range []client.Object{newStore("default", strings.ToLower(name), *spec), newClusterStore(strings.ToLower(name), *spec, common.ClusterStoreSpec{})} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}

func TestExamples(t *testing.T) {
	suite.For(t).Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	docs := 0
	for _, name := range []string{"clientsecret.yaml", "push.yaml", "workloadidentity.yaml"} {
		for _, doc := range bytes.Split(operatortest.Example(t, manifests.Examples, name), []byte("\n---\n")) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &o.Object); err != nil {
				t.Fatal(err)
			}
			suite.For(t).Create(o, client.DryRunAll, client.FieldValidation("Strict"))
			docs++
		}
	}
	if docs != 5 {
		t.Errorf("%d documents, want 5", docs)
	}
}

func TestProvider(t *testing.T) {
	const ns = "orders"
	srv := startEmulator(t)
	srv.SetApp("federated", emulator.App{Subjects: []string{"system:serviceaccount:" + ns + ":default"}})
	put(t, srv, "orders-db", `{"user":"u","password":"one"}`)
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("azure", map[string]string{"secret": "s3cret"})
	suite.For(t).Create(newStore(ns, "by-secret", specOf(srv, bySecret(""))))
	suite.For(t).Create(newStore(ns, "by-token", specOf(srv, byToken("", "federated"))))
	suite.For(t).Create(newClusterStore("shared", specOf(srv, bySecret(ns)), common.ClusterStoreSpec{}))
	suite.Start(t, "provider-azure", manifests.Permissions, newOperator)
	refs := map[string]string{"by-secret": "AzureKeyVault", "by-token": "AzureKeyVault", "shared": "ClusterAzureKeyVault"}
	for name, kind := range refs {
		suite.For(t).Create(operatortest.ExternalSecret(ns, name, kind, name, "orders-db", "password"))
	}
	for name := range refs {
		controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.For(t).In(ns).Data(name)["password"]) })
	}

	// A rotated client secret is a new login without a restart.
	before := srv.Count(emulator.CallToken)
	srv.SetApp(reader, emulator.App{Secrets: []string{"n3w"}})
	suite.For(t).In(ns).Source("azure", map[string]string{"secret": "n3w"})
	controlplane.Eventually(t, func() string {
		if srv.Count(emulator.CallToken) <= before {
			return "no new login"
		}
		return cmp.Diff("True Valid", suite.For(t).Ready(newStore(ns, "by-secret", v1alpha1.AzureSpec{})))
	})
}

// TestAnnotations logs in as the client that the annotations of ServiceAccounts name. A changed annotation is a new login without a restart.
func TestAnnotations(t *testing.T) {
	const ns, bank = "wages", "wages-bank"
	srv := startEmulator(t)
	put(t, srv, "wages-db", `{"password":"one"}`)
	account := func(namespace, client string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "annotated", Annotations: map[string]string{
			"azure.workload.identity/client-id": client, "azure.workload.identity/tenant-id": emulator.DefaultTenant,
		}}}
	}
	for _, namespace := range []string{ns, bank} {
		suite.For(t).Namespace(namespace, nil)
		srv.SetApp(namespace, emulator.App{Subjects: []string{"system:serviceaccount:" + namespace + ":annotated"}})
	}
	suite.For(t).Create(account(ns, "unknown"))
	suite.For(t).Create(account(bank, bank))
	spec := func(namespace string) v1alpha1.AzureSpec {
		s := specOf(srv, byToken(namespace, ""))
		s.TenantID, s.Auth.ServiceAccountRef.Name = "", "annotated"
		return s
	}
	suite.For(t).Create(newStore(ns, "annotated", spec("")))
	suite.For(t).Create(newClusterStore("annotated", spec(bank), common.ClusterStoreSpec{}))
	suite.Start(t, "provider-azure", manifests.Permissions, newOperator)
	suite.For(t).Create(operatortest.ExternalSecret(ns, "own", "AzureKeyVault", "annotated", "wages-db", "password"))
	suite.For(t).Create(operatortest.ExternalSecret(ns, "shared", "ClusterAzureKeyVault", "annotated", "wages-db", "password"))
	controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.For(t).In(ns).Data("shared")["password"]) })
	controlplane.Eventually(t, func() string {
		return cmp.Diff("False "+common.ReasonStoreAuthFailed, suite.For(t).Ready(newStore(ns, "annotated", v1alpha1.AzureSpec{})))
	})
	own := account(ns, ns)
	suite.For(t).Update(own, func() { own.Annotations["azure.workload.identity/client-id"] = ns })
	controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.For(t).In(ns).Data("own")["password"]) })
}
