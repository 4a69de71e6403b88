package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

var suite operatortest.Suite

func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

func TestExamples(t *testing.T) {
	suite.Examples(t, operatortest.Example(t, manifests.Examples, "vaultkv.yaml"))
}

func TestGeneratorExamples(t *testing.T) {
	suite.Examples(t, operatortest.Example(t, manifests.Examples, "vaultdynamicsecret.yaml"))
}

func ref(name, key string) common.SecretKeySelector {
	return common.SecretKeySelector{Name: name, Key: key}
}

func TestCRD(t *testing.T) {
	type auth = v1alpha1.VaultAuth
	token := new(ref("vault", "token"))
	account := &common.ServiceAccountSelector{Name: "default"}
	const one = "set exactly one of tokenSecretRef"
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.VaultKVSpec)
		want   string // part of the rejection
	}{
		"Least":    {"Where and what is enough for the API server.", func(*v1alpha1.VaultKVSpec) {}, ""},
		"NoServer": {"There is no default server.", func(s *v1alpha1.VaultKVSpec) { s.Server = "" }, "spec.server"},
		"NoPath":   {"There is no default mount.", func(s *v1alpha1.VaultKVSpec) { s.Path = "" }, "spec.path"},
		"Version":  {"KV has two versions.", func(s *v1alpha1.VaultKVSpec) { s.Version = "v3" }, "spec.version"},
		"V1":       {"This is one.", func(s *v1alpha1.VaultKVSpec) { s.Version = "v1" }, ""},
		"NoAuth":   {"An auth that names nobody is a mistake.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{} }, one},
		"TwoAuths": {"Which of two would win?", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{TokenSecretRef: token, Cert: &v1alpha1.CertAuth{}} }, one},
		"Token":    {"A token is enough.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{TokenSecretRef: token} }, ""},
		"RoleTwice": {"Which of two would win?", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{AppRole: &v1alpha1.AppRoleAuth{RoleID: "r", RoleRef: token}}
		}, "set either roleId or roleRef"},
		"KubeNothing": {"The operator's own token is sent for nobody.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "r"}} }, "set either serviceAccountRef or secretRef"},
		"Kube": {"This is how most log in.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "r", ServiceAccountRef: account}}
		}, ""},
		"JWTNothing": {"There must be a JWT.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{JWT: &v1alpha1.JWTAuth{}} }, "set either secretRef or kubernetesServiceAccountToken"},
		"IAMNothing": {"There must be an identity.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r"}} }, "set either secretRef or jwt"},
		"IAMNoRole": {"A token is good for assuming a role only.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r", JWT: &v1alpha1.IAMJWT{ServiceAccountRef: *account}}}
		}, "jwt needs a role"},
		"CASecret": {"Certificates may be in a Secret.", func(s *v1alpha1.VaultKVSpec) {
			s.CAProvider = &v1alpha1.CAProvider{Type: "Secret", SecretKeySelector: *token}
		}, ""},
		"CAConfigMap": {"Or in a ConfigMap: they are no secret.", func(s *v1alpha1.VaultKVSpec) {
			s.CAProvider = &v1alpha1.CAProvider{Type: "ConfigMap", SecretKeySelector: *token}
		}, ""},
		"CAFile": {"Nothing else is read.", func(s *v1alpha1.VaultKVSpec) {
			s.CAProvider = &v1alpha1.CAProvider{Type: "File", SecretKeySelector: *token}
		}, "spec.caProvider.type"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: "https://vault.example"}}
			tc.change(&spec)
			for _, o := range []client.Object{
				&v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strings.ToLower(name)}, Spec: spec},
				&v1alpha1.ClusterVaultKV{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(name)}, Spec: v1alpha1.ClusterVaultKVSpec{VaultKVSpec: spec}},
			} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}

func TestGeneratorCRD(t *testing.T) {
	type spec = v1alpha1.VaultDynamicSecretSpec
	object := func(raw string) func(*spec) {
		return func(s *spec) { s.Parameters = &runtime.RawExtension{Raw: []byte(raw)} }
	}
	cases := map[string]struct {
		reason string
		change func(*spec)
		want   string // part of the rejection
	}{
		"Least":    {"Where and what is enough for the API server.", func(*spec) {}, ""},
		"NoServer": {"There is no default server.", func(s *spec) { s.Server = "" }, "spec.server"},
		"NoPath":   {"There is no default path.", func(s *spec) { s.Path = "" }, "spec.path"},
		"Method":   {"What is deleted is no credential.", func(s *spec) { s.Method = "DELETE" }, "spec.method"},
		"Post":     {"Some engines want this one.", func(s *spec) { s.Method = "POST" }, ""},
		"Result":   {"An answer has three parts.", func(s *spec) { s.ResultType = "All" }, "spec.resultType"},
		"Auth":     {"This is one.", func(s *spec) { s.ResultType = "Auth" }, ""},
		"TwoAuths": {"Which of two would win?", func(s *spec) {
			s.Auth = &v1alpha1.VaultAuth{TokenSecretRef: new(ref("vault", "token")), Cert: &v1alpha1.CertAuth{}}
		}, "set exactly one of tokenSecretRef"},
		"Parameters": {"They are nested as one likes.", object(`{"a":{"b":[1,"c"]}}`), ""},
		"List":       {"Parameters have names.", object(`["a"]`), "spec.parameters"},
		"Rotation":   {"A time is a duration.", func(s *spec) { s.RotationInterval = "soon" }, "spec.rotationInterval"},
		"Delay":      {"So is this.", func(s *spec) { s.RevocationDelay = "-1m" }, "spec.revocationDelay"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := spec{Path: "database/creds/shop", VaultServer: v1alpha1.VaultServer{Server: "https://vault.example"}}
			tc.change(&s)
			for _, o := range []client.Object{
				&v1alpha1.VaultDynamicSecret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strings.ToLower(name)}, Spec: s},
				&v1alpha1.ClusterVaultDynamicSecret{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(name)}, Spec: v1alpha1.ClusterVaultDynamicSecretSpec{VaultDynamicSecretSpec: s}},
			} {
				suite.Accepts(t, tc.reason, o, tc.want)
			}
		})
	}
}

// reviewer is what Vault needs to ask the API server whose a token is.
const reviewer = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: vault-reviewer}
rules:
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
`

// enableKubernetes has Vault ask the API server of the tests about tokens.
func enableKubernetes(t *testing.T, srv *vaulttest.Server) {
	t.Helper()
	vault := suite.Grant(t, "vault-system", "vault", []byte(reviewer))
	srv.Enable("kubernetes")
	srv.Do(http.MethodPost, "auth/kubernetes/config", vaulttest.M{
		"kubernetes_host": vault.Host, "kubernetes_ca_cert": string(vault.CAData), "token_reviewer_jwt": vault.BearerToken, "disable_local_ca_jwt": true,
	})
}

// TestProvider runs the whole module: a store with an AppRole, one whose credentials are wrong until they
// are mended, and a namespaced and a cluster store that log in with the token of a ServiceAccount.
func TestProvider(t *testing.T) {
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/data/shop/*" { capabilities = ["read"] }`)
	srv.Do(http.MethodPost, "secret/data/shop/db", vaulttest.M{"data": vaulttest.M{"password": "one"}})
	srv.Enable("approle")
	srv.Do(http.MethodPost, "auth/approle/role/shop", vaulttest.M{"token_policies": "reader"})
	roleID := srv.Do(http.MethodGet, "auth/approle/role/shop/role-id", nil)["role_id"].(string)
	secretID := srv.Do(http.MethodPost, "auth/approle/role/shop/secret-id", nil)["secret_id"].(string)

	enableKubernetes(t, srv)
	srv.Do(http.MethodPost, "auth/kubernetes/role/shop", vaulttest.M{
		"bound_service_account_names": "default", "bound_service_account_namespaces": "shop", "token_policies": "reader",
	})
	byAccount := func(namespace string) v1alpha1.VaultKVSpec {
		return v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: srv.URL, Auth: &v1alpha1.VaultAuth{Kubernetes: &v1alpha1.KubernetesAuth{
			Role: "shop", ServiceAccountRef: &common.ServiceAccountSelector{Name: "default", Namespace: namespace},
		}}}}
	}

	suite.Namespace(t, "shop", nil)
	suite.Secret(t, "shop", "vault", map[string]string{"secretId": secretID})
	broken := suite.Secret(t, "shop", "broken", map[string]string{"secretId": "wrong"})
	for name, secret := range map[string]string{"good": "vault", "bad": "broken"} {
		suite.Create(t, &v1alpha1.VaultKV{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: srv.URL, Auth: &v1alpha1.VaultAuth{
				AppRole: &v1alpha1.AppRoleAuth{RoleID: roleID, SecretRef: ref(secret, "secretId")},
			}}},
		})
	}

	suite.Create(t, &v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "account"}, Spec: byAccount("")})
	suite.Create(t, &v1alpha1.ClusterVaultKV{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Spec: v1alpha1.ClusterVaultKVSpec{
		VaultKVSpec:      byAccount("shop"),
		ClusterStoreSpec: common.ClusterStoreSpec{Conditions: []common.StoreCondition{{NamespaceCondition: common.NamespaceCondition{Namespaces: []string{"shop"}}, AllowedKeys: []string{"${namespace}/*"}}}},
	}})

	suite.Start(t, "provider-vault", manifests.Rights, newOperator)
	for s, kind := range map[string]string{"good": "VaultKV", "bad": "VaultKV", "account": "VaultKV", "shared": "ClusterVaultKV"} {
		suite.Create(t, operatortest.ExternalSecret("shop", s, kind, s, "shop/db", "password"))
	}
	for _, s := range []string{"good", "account", "shared"} {
		controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.Data(t, "shop", s)["password"]) })
	}
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.Ready(t, &v1alpha1.ClusterVaultKV{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.Ready(t, &v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "good"}}))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("False AuthFailed", suite.Ready(t, &v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad"}}))
	})

	broken.Data["secretId"] = []byte(secretID)
	if err := suite.API.Update(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.Ready(t, &v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad"}}))
	})
	controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.Data(t, "shop", "bad")["password"]) })
}
