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
		want   string // part of the error
	}{
		"Least":    {"The server, the path and a way to log in are enough.", func(*v1alpha1.VaultKVSpec) {}, ""},
		"Auth":     {"A missing auth is rejected.", func(s *v1alpha1.VaultKVSpec) { s.Auth = nil }, "spec.auth: Required value"},
		"NoServer": {"A missing server is rejected.", func(s *v1alpha1.VaultKVSpec) { s.Server = "" }, "spec.server"},
		"NoPath":   {"A missing path is rejected.", func(s *v1alpha1.VaultKVSpec) { s.Path = "" }, "spec.path"},
		"Version":  {"An unknown version is rejected.", func(s *v1alpha1.VaultKVSpec) { s.Version = "v3" }, "spec.version"},
		"V1":       {"The version v1 is accepted.", func(s *v1alpha1.VaultKVSpec) { s.Version = "v1" }, ""},
		"NoAuth":   {"An empty auth is rejected.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{} }, one},
		"TwoAuths": {"Two ways to log in are rejected.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{TokenSecretRef: token, Cert: &v1alpha1.CertAuth{}} }, one},
		"Token":    {"A token is enough.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{TokenSecretRef: token} }, ""},
		"RoleTwice": {"Two references to a role id are rejected.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{AppRole: &v1alpha1.AppRoleAuth{RoleID: "r", RoleRef: token}}
		}, "set either roleId or roleRef"},
		"KubeNothing": {"The auth method kubernetes needs a ServiceAccount or a Secret, because the operator's own token is never sent unasked.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "r"}} }, "set exactly one of serviceAccountRef, secretRef and operatorServiceAccount"},
		"KubeOwn": {"The auth method kubernetes with the operator's own ServiceAccount needs an audience.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "r", OperatorServiceAccount: &common.OperatorServiceAccount{}}}
		}, "operatorServiceAccount.audience"},
		"KubeTwo": {"The operator's own ServiceAccount together with another one is rejected.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "r", ServiceAccountRef: account, OperatorServiceAccount: &common.OperatorServiceAccount{Audience: "vault"}}}
		}, "set exactly one of serviceAccountRef, secretRef and operatorServiceAccount"},
		"Kube": {"The auth method kubernetes with a ServiceAccount is accepted.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{Kubernetes: &v1alpha1.KubernetesAuth{Role: "r", ServiceAccountRef: account}}
		}, ""},
		"JWTNothing": {"The auth method jwt needs a ServiceAccount or a Secret.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{JWT: &v1alpha1.JWTAuth{}} }, "set exactly one of secretRef, serviceAccountRef and operatorServiceAccount"},
		"IAMNothing": {"The auth method iam needs a ServiceAccount or a Secret.", func(s *v1alpha1.VaultKVSpec) { s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r"}} }, "set either secretRef or serviceAccountRef"},
		"IAMNoRole": {"The auth method iam with a ServiceAccount needs a role, because its token can only assume one.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r", ServiceAccountRef: account}}
		}, "serviceAccountRef needs a role"},
		"IAMExternalID": {"A field that would be ignored is rejected.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r", AWSIAMRole: "arn:aws:iam::111122223333:role/shop", ExternalID: "x", ServiceAccountRef: account}}
		}, "externalID needs secretRef and a role that is assumed with it"},
		"IAMRoleName": {"A role without its ARN is rejected.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r", AWSIAMRole: "shop", ServiceAccountRef: account}}
		}, "role must be the ARN of an IAM role"},
		"GCP": {"The auth method gcp with a key is accepted.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{GCP: &v1alpha1.GCPAuth{Role: "r", SecretRef: v1alpha1.GCPSecretRef{SecretAccessKeySecretRef: *token}}}
		}, ""},
		"GCPNoRole": {"The auth method gcp needs a role.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{GCP: &v1alpha1.GCPAuth{SecretRef: v1alpha1.GCPSecretRef{SecretAccessKeySecretRef: *token}}}
		}, "spec.auth.gcp.role"},
		"GCPAndToken": {"The auth method gcp with another method is rejected.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{TokenSecretRef: token, GCP: &v1alpha1.GCPAuth{Role: "r", SecretRef: v1alpha1.GCPSecretRef{SecretAccessKeySecretRef: *token}}}
		}, "cert, iam and gcp"},
		"ServerHost": {"A server without a scheme is rejected.", func(s *v1alpha1.VaultKVSpec) { s.Server = "vault.example" }, "server must be a URL"},
		"IAMFormer": {"The error for a former field of iam names the present one.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{IAM: &v1alpha1.IAMAuth{Role: "r", JWT: &common.Renamed{}}}
		}, "jwt.serviceAccountRef is not supported: use serviceAccountRef"},
		"JWTFormer": {"The error for a former field of jwt names the present one.", func(s *v1alpha1.VaultKVSpec) {
			s.Auth = &auth{JWT: &v1alpha1.JWTAuth{KubernetesServiceAccountToken: &common.Renamed{}}}
		}, "kubernetesServiceAccountToken.serviceAccountRef is not supported: use serviceAccountRef"},
		"CASecret": {"Certificates can be in a Secret.", func(s *v1alpha1.VaultKVSpec) {
			s.CAProvider = &common.CAProvider{Type: "Secret", SecretKeySelector: *token}
		}, ""},
		"CAConfigMap": {"Certificates can be in a ConfigMap.", func(s *v1alpha1.VaultKVSpec) {
			s.CAProvider = &common.CAProvider{Type: "ConfigMap", SecretKeySelector: *token}
		}, ""},
		"CAFile": {"Another Kind for certificates is rejected.", func(s *v1alpha1.VaultKVSpec) {
			s.CAProvider = &common.CAProvider{Type: "File", SecretKeySelector: *token}
		}, "spec.caProvider.type"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: "https://vault.example", Auth: &auth{TokenSecretRef: token}}}
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
		want   string // part of the error
	}{
		"Least":    {"The server, the path and a way to log in are enough.", func(*spec) {}, ""},
		"NoAuth":   {"A missing way to log in is rejected.", func(s *spec) { s.Auth = nil }, "spec.auth: Required value"},
		"NoServer": {"A missing server is rejected.", func(s *spec) { s.Server = "" }, "spec.server"},
		"NoPath":   {"A missing path is rejected.", func(s *spec) { s.Path = "" }, "spec.path"},
		"Method":   {"The method DELETE is rejected.", func(s *spec) { s.Method = "DELETE" }, "spec.method"},
		"Post":     {"The method POST is accepted.", func(s *spec) { s.Method = "POST" }, ""},
		"Result":   {"An unknown result type is rejected.", func(s *spec) { s.ResultType = "All" }, "spec.resultType"},
		"Auth":     {"The result type Auth is accepted.", func(s *spec) { s.ResultType = "Auth" }, ""},
		"TwoAuths": {"Two ways to log in are rejected.", func(s *spec) {
			s.Auth.Cert = &v1alpha1.CertAuth{}
		}, "set exactly one of tokenSecretRef"},
		"Parameters": {"Nested parameters are accepted.", object(`{"a":{"b":[1,"c"]}}`), ""},
		"List":       {"Parameters that are not an object are rejected.", object(`["a"]`), "spec.parameters"},
		"Rotation":   {"An invalid rotation interval is rejected.", func(s *spec) { s.RotationInterval = "soon" }, "spec.rotationInterval"},
		"Delay":      {"An invalid revocation delay is rejected.", func(s *spec) { s.RevocationDelay = "-1m" }, "spec.revocationDelay"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := spec{Path: "database/creds/shop", VaultServer: v1alpha1.VaultServer{Server: "https://vault.example", Auth: &v1alpha1.VaultAuth{TokenSecretRef: new(ref("vault", "token"))}}}
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

// reviewer is the RBAC that Vault needs to review tokens at the API server.
const reviewer = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: vault-reviewer}
rules:
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
`

// enableKubernetes makes Vault review tokens at the API server of the tests.
func enableKubernetes(t *testing.T, srv *vaulttest.Server) {
	t.Helper()
	vault := suite.Grant(t, "vault-system", "vault", []byte(reviewer))
	srv.Enable("kubernetes")
	srv.Do(http.MethodPost, "auth/kubernetes/config", vaulttest.M{
		"kubernetes_host": vault.Host, "kubernetes_ca_cert": string(vault.CAData), "token_reviewer_jwt": vault.BearerToken, "disable_local_ca_jwt": true,
	})
}

// TestProvider tests the whole module: a store with an AppRole, one whose credentials are wrong until they are
// fixed, and a namespaced and a cluster store that log in with the token of a ServiceAccount.
func TestProvider(t *testing.T) {
	t.Parallel()
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

	suite.For(t).Namespace("shop", nil)
	suite.For(t).In("shop").Source("vault", map[string]string{"secretId": secretID})
	broken := suite.For(t).In("shop").Source("broken", map[string]string{"secretId": "wrong"})
	for name, secret := range map[string]string{"good": "vault", "bad": "broken"} {
		suite.For(t).Create(&v1alpha1.VaultKV{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: srv.URL, Auth: &v1alpha1.VaultAuth{
				AppRole: &v1alpha1.AppRoleAuth{RoleID: roleID, SecretRef: ref(secret, "secretId")},
			}}},
		})
	}

	suite.For(t).Create(&v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "account"}, Spec: byAccount("")})
	suite.For(t).Create(&v1alpha1.ClusterVaultKV{ObjectMeta: metav1.ObjectMeta{Name: "shared"}, Spec: v1alpha1.ClusterVaultKVSpec{
		VaultKVSpec:      byAccount("shop"),
		ClusterStoreSpec: common.ClusterStoreSpec{Conditions: []common.StoreCondition{{NamespaceCondition: common.NamespaceCondition{Namespaces: []string{"shop"}}, AllowedKeys: []string{"${namespace}/*"}}}},
	}})

	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	for s, kind := range map[string]string{"good": "VaultKV", "bad": "VaultKV", "account": "VaultKV", "shared": "ClusterVaultKV"} {
		suite.For(t).Create(operatortest.ExternalSecret("shop", s, kind, s, "shop/db", "password"))
	}
	for _, s := range []string{"good", "account", "shared"} {
		controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.For(t).In("shop").Data(s)["password"]) })
	}
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.For(t).Ready(&v1alpha1.ClusterVaultKV{ObjectMeta: metav1.ObjectMeta{Name: "shared"}}))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.For(t).Ready(&v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "good"}}))
	})
	controlplane.Eventually(t, func() string {
		return cmp.Diff("False AuthFailed", suite.For(t).Ready(&v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad"}}))
	})

	broken.Data["secretId"] = []byte(secretID)
	if err := suite.API.Update(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() string {
		return cmp.Diff("True Valid", suite.For(t).Ready(&v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bad"}}))
	})
	controlplane.Eventually(t, func() string { return cmp.Diff("one", suite.For(t).In("shop").Data("bad")["password"]) })
}
