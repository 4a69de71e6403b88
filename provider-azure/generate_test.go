package main

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-azure/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
	"github.com/direct-secrets/direct-secrets/provider-azure/manifests"
)

const pull = "repository:shop/web:pull"

type tokenSpec = v1alpha1.ACRAccessTokenSpec

func newTokens(namespace, name string, s tokenSpec) *v1alpha1.ACRAccessToken {
	return &v1alpha1.ACRAccessToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: s}
}

func newClusterTokens(name string, s tokenSpec, conditions ...common.NamespaceCondition) *v1alpha1.ClusterACRAccessToken {
	g := &v1alpha1.ClusterACRAccessToken{Spec: v1alpha1.ClusterACRAccessTokenSpec{ACRAccessTokenSpec: s}}
	g.Name, g.Spec.Conditions = name, conditions
	return g
}

// tokensOf returns the spec of a generator for the registry of an emulator.
func tokensOf(srv *emulator.Server, auth v1alpha1.AzureAuth, scope string) tokenSpec {
	return tokenSpec{Registry: srv.Address(), Scope: scope, AzureLogin: v1alpha1.AzureLogin{TenantID: emulator.DefaultTenant, Auth: auth}}
}

// TestGenerates generates tokens for objects, from the first value to the deletion.
func TestGenerates(t *testing.T) {
	const ns = "generates"
	srv := startEmulator(t)
	srv.SetApp("federated", emulator.App{Subjects: []string{"system:serviceaccount:" + ns + ":default"}})
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("azure", map[string]string{"secret": "s3cret"})
	suite.Start(t, "provider-azure", manifests.Permissions, newOperator)
	cases := map[string]struct {
		generator     provider.GeneratorObject
		client, scope string
	}{
		"Secret":        {newTokens(ns, "secret", tokensOf(srv, bySecret(""), "")), reader, ""},
		"Scope":         {newTokens(ns, "scope", tokensOf(srv, bySecret(""), pull)), reader, pull},
		"Token":         {newTokens(ns, "token", tokensOf(srv, byToken("", "federated"), pull)), "federated", pull},
		"ClusterSecret": {newClusterTokens("secret", tokensOf(srv, bySecret(ns), pull)), reader, pull},
		"ClusterToken":  {newClusterTokens("token", tokensOf(srv, byToken(ns, "federated"), "")), "federated", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			suite.Generates(t, operatortest.Generation{
				Generator: tc.generator, Namespace: ns, Service: emulator.Name, Secrets: []string{"password"}, Plain: []string{"username", "expires_at"},
			})
			es := operatortest.Generated(ns, "whose", suite.For(t).Kind(tc.generator), tc.generator.GetName())
			suite.For(t).Create(es)
			client, scope, ok := srv.RegistryToken(suite.For(t).Synced(es)["password"])
			if diff := cmp.Diff([]any{tc.client, tc.scope, true}, []any{client, scope, ok}); diff != "" {
				t.Errorf("client, scope and validity of the token: -want, +got:\n%s", diff)
			}
			suite.For(t).End(es)
		})
	}
}

// TestGenerateExample applies the example of the docs, with another registry and namespace.
func TestGenerateExample(t *testing.T) {
	const ns, host = "registry", "shop.azurecr.io"
	srv := startEmulator(t)
	srv.SetApp("22222222-2222-2222-2222-222222222222", emulator.App{Subjects: []string{"system:serviceaccount:" + ns + ":shop"}})
	suite.For(t).Namespace(ns, nil)
	suite.For(t).Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop"}})
	suite.Start(t, "provider-azure", manifests.Permissions, newOperator)
	suite.Apply(t, operatortest.Example(t, manifests.Examples, "acraccesstoken.yaml"), func(o *unstructured.Unstructured) {
		o.SetNamespace(ns)
		if o.GetKind() != "ACRAccessToken" {
			return
		}
		if err := unstructured.SetNestedField(o.Object, srv.Address(), "spec", "registry"); err != nil {
			t.Fatal(err)
		}
	})
	es := operatortest.Generated(ns, "registry", "", "")
	data := suite.For(t).Synced(es)
	type login struct{ Username, Password, Auth string }
	var got struct{ Auths map[string]login }
	if err := json.Unmarshal([]byte(data[corev1.DockerConfigJsonKey]), &got); err != nil {
		t.Fatal(err)
	}
	const user = "00000000-0000-0000-0000-000000000000"
	token := got.Auths[host].Password
	want := map[string]login{host: {Username: user, Password: token, Auth: base64.StdEncoding.EncodeToString([]byte(user + ":" + token))}}
	if diff := cmp.Diff(want, got.Auths); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, scope, ok := srv.RegistryToken(token); !ok || scope != "" {
		t.Errorf("the token is valid: %t, with the scope %q", ok, scope)
	}
	suite.For(t).End(es)
}

// TestBadGenerators creates generators that cannot be used, among them some that reach for the credentials of others, or for a host
// outside the cloud. The registry is not called, but by the one whose identity has no role.
func TestBadGenerators(t *testing.T) {
	const (
		ns      = "bad-generators"
		invalid = common.ReasonStoreInvalidSpec
		failed  = common.ReasonStoreAuthFailed
		secret  = "spec.auth.clientSecret.clientSecretRef: "
		account = "spec.auth.serviceAccountRef"
	)
	srv := startEmulator(t)
	srv.SetApp("bank", emulator.App{Subjects: []string{"system:serviceaccount:bank:default"}})
	srv.SetApp("norole", emulator.App{Subjects: []string{"system:serviceaccount:" + ns + ":default"}, NoRegistry: true})
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("azure", map[string]string{"secret": "s3cret", "wrong": "c4n4ry"})
	suite.Start(t, "provider-azure", manifests.Permissions, newOperator)
	made := func() []string {
		return suite.Made(t, &v1alpha1.ACRAccessToken{}, &v1alpha1.ClusterACRAccessToken{})
	}
	with := func(change func(*tokenSpec)) *v1alpha1.ACRAccessToken {
		s := tokensOf(srv, bySecret(""), "")
		change(&s)
		return newTokens(ns, "", s)
	}
	wrong := func(s *tokenSpec) { s.Auth.ClientSecret.ClientSecretRef.Key = "wrong" }
	t.Run("ACRAccessToken", func(t *testing.T) {
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"NoSecret":  {Why: "The Secret does not exist.", Store: with(func(s *tokenSpec) { s.Auth.ClientSecret.ClientSecretRef.Name = "none" }), Want: invalid, Message: secret + "Secret " + ns + "/none does not exist"},
			"Namespace": {Why: "A namespaced generator reads only Secrets in its own namespace.", Store: with(func(s *tokenSpec) { s.Auth = bySecret("bank") }), Want: invalid, Message: secret + "Secret azure must not name a namespace"},
			"Account":   {Why: "A namespaced generator gets only tokens of ServiceAccounts in its own namespace.", Store: with(func(s *tokenSpec) { s.Auth = byToken("bank", "bank") }), Want: invalid, Message: account + ": ServiceAccount default must not name a namespace"},
			"Client":    {Why: "A client that trusts the ServiceAccount of another namespace does not trust this one.", Store: with(func(s *tokenSpec) { s.Auth = byToken("", "bank") }), Want: failed, Message: account + ": no federated credential of the client has the subject"},
			"Wrong":     {Why: "The client secret is wrong.", Store: with(wrong), Want: failed, Message: "spec.auth.clientSecret: the client secret is wrong"},
			"Role":      {Why: "The identity has no role in the registry.", Store: with(func(s *tokenSpec) { s.Auth = byToken("", "norole") }), Want: failed, Message: "spec.registry: the registry does not accept the identity in spec.auth; grant it a role such as AcrPull"},
			"Machine":   {Why: "A namespaced generator does not get the operator's own identity.", Store: with(func(s *tokenSpec) { s.Auth = v1alpha1.AzureAuth{ManagedIdentity: &v1alpha1.ManagedIdentity{}} }), Want: invalid, Message: "spec.auth.managedIdentity: "},
			"Elsewhere": {Why: "A host outside the cloud gets no token.", Store: with(func(s *tokenSpec) { s.Registry = "shop.azurecr.io.evil.example" }), Want: invalid, Message: "spec.registry: is not a registry of the environment PublicCloud"},
		}, made)
	})
	t.Run("ClusterACRAccessToken", func(t *testing.T) {
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"NoNamespace": {Why: "The reference needs a namespace.", Store: newClusterTokens("", tokensOf(srv, bySecret(""), "")), Want: invalid, Message: secret + "Secret azure needs a namespace"},
			"Machine":     {Why: "A server on the operator's own host does not get the operator's own identity.", Store: newClusterTokens("", tokensOf(srv, v1alpha1.AzureAuth{ManagedIdentity: &v1alpha1.ManagedIdentity{}}, "")), Want: invalid, Message: "spec.registry: with auth.managedIdentity it must be a registry of a known cloud"},
		}, made)
	})
	t.Run("Ungated", func(t *testing.T) {
		g := with(wrong)
		g.Name = "ungated"
		suite.Ungated(t, ns, g, `Denied: ACRAccessToken "ungated": spec.auth.clientSecret: the client secret is wrong`)
	})
	t.Run("Excluded", func(t *testing.T) {
		suite.Excludes(t, ns, newClusterTokens("elsewhere", tokensOf(srv, bySecret(ns), ""), common.NamespaceCondition{Namespaces: []string{"elsewhere"}}))
	})
	for _, c := range srv.Calls(emulator.CallExchange) {
		if c.Path != "/oauth2/exchange" || c.Host != srv.Address() {
			t.Errorf("a token was sent to %s%s", c.Host, c.Path)
		}
	}
}

func TestACRAccessTokenCRD(t *testing.T) {
	good := tokenSpec{Registry: "shop.azurecr.io", AzureLogin: v1alpha1.AzureLogin{TenantID: "t", Auth: bySecret("")}}
	stack := &v1alpha1.RegistryCloudConfig{ActiveDirectoryEndpoint: "https://login.example", Resource: "https://management.example/id", RegistryDNSSuffix: "azurecr.example"}
	custom := func(change func(*v1alpha1.RegistryCloudConfig)) func(*tokenSpec) {
		return func(s *tokenSpec) {
			s.Environment, s.CustomCloudConfig = v1alpha1.CustomEnvironment, stack.DeepCopy()
			change(s.CustomCloudConfig)
		}
	}
	cases := map[string]struct {
		reason string
		change func(*tokenSpec)
		want   string // part of the error
	}{
		"Good":     {"A registry, a tenant and a client secret are enough.", func(*tokenSpec) {}, ""},
		"Scope":    {"A scope is valid.", func(s *tokenSpec) { s.Scope = "repository:shop/web:pull,push" }, ""},
		"Scopes":   {"Several scopes are valid.", func(s *tokenSpec) { s.Scope = "repository:shop/*:pull registry:catalog:*" }, ""},
		"Emulator": {"An emulator has a port.", func(s *tokenSpec) { s.Registry = "127.0.0.1:5000" }, ""},
		"Custom":   {"A custom cloud has its own addresses.", custom(func(*v1alpha1.RegistryCloudConfig) {}), ""},
		"Machine": {"A managed identity needs no tenant.", func(s *tokenSpec) {
			s.AzureLogin = v1alpha1.AzureLogin{Auth: v1alpha1.AzureAuth{ManagedIdentity: &v1alpha1.ManagedIdentity{}}}
		}, ""},
		"URL":         {"A URL is rejected.", func(s *tokenSpec) { s.Registry = "https://shop.azurecr.io" }, "registry must be a login server"},
		"Path":        {"A path is rejected.", func(s *tokenSpec) { s.Registry = "shop.azurecr.io/web" }, "registry must be a login server"},
		"NoRegistry":  {"An empty registry is rejected.", func(s *tokenSpec) { s.Registry = "" }, "registry must be a login server"},
		"BadScope":    {"A scope without a type and actions is rejected.", func(s *tokenSpec) { s.Scope = "shop/web" }, "spec.scope"},
		"Comma":       {"Scopes that are separated otherwise are rejected.", func(s *tokenSpec) { s.Scope = "repository:a:pull;repository:b:pull" }, "spec.scope"},
		"NoTenant":    {"A client secret without a tenant is rejected.", func(s *tokenSpec) { s.TenantID = "" }, "set tenantID"},
		"NoAuth":      {"An empty auth is rejected.", func(s *tokenSpec) { s.Auth = v1alpha1.AzureAuth{} }, "set exactly one of"},
		"Environment": {"An unknown cloud is rejected.", func(s *tokenSpec) { s.Environment = "GermanCloud" }, "spec.environment"},
		"NoConfig":    {"A custom cloud without addresses is rejected.", func(s *tokenSpec) { s.Environment = v1alpha1.CustomEnvironment }, "set customCloudConfig"},
		"NotCustom":   {"Addresses of a known cloud are rejected.", func(s *tokenSpec) { s.CustomCloudConfig = stack }, "set customCloudConfig"},
		"Authority":   {"An authority without a scheme is rejected.", custom(func(c *v1alpha1.RegistryCloudConfig) { c.ActiveDirectoryEndpoint = "login" }), "activeDirectoryEndpoint must be a URL"},
		"Resource":    {"A resource that is no URL is rejected.", custom(func(c *v1alpha1.RegistryCloudConfig) { c.Resource = "management" }), "resource must be a URL"},
		"Suffix":      {"A domain with a scheme is rejected.", custom(func(c *v1alpha1.RegistryCloudConfig) { c.RegistryDNSSuffix = "https://azurecr.example" }), "registryDNSSuffix"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := good.DeepCopy()
			tc.change(spec)
			for _, o := range []client.Object{newTokens("default", strings.ToLower(name), *spec), newClusterTokens(strings.ToLower(name), *spec)} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}
