package main

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/manifests"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

func newStore(namespace string, spec v1alpha1.VaultKVSpec) *v1alpha1.VaultKV {
	return &v1alpha1.VaultKV{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: spec}
}

func newClusterStore(spec v1alpha1.VaultKVSpec, serves common.ClusterStoreSpec) *v1alpha1.ClusterVaultKV {
	return &v1alpha1.ClusterVaultKV{Spec: v1alpha1.ClusterVaultKVSpec{VaultKVSpec: spec, ClusterStoreSpec: serves}}
}

// badAuth starts a Vault with some auth methods, and creates a namespace with credentials for it.
func badAuth(t *testing.T, ns string) (srv, overTLS *vaulttest.Server) {
	t.Helper()
	srv, overTLS = vaulttest.Start(t), vaulttest.Start(t, vaulttest.WithTLS())
	authority, other := vaulttest.NewAuthority(t), vaulttest.NewAuthority(t)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/*" { capabilities = ["read", "list"] }`)
	srv.Enable("approle")
	srv.Do(http.MethodPost, "auth/approle/role/shop", vaulttest.M{"token_policies": "reader"})
	enableKubernetes(t, srv)
	srv.Do(http.MethodPost, "auth/kubernetes/role/bank", vaulttest.M{
		"bound_service_account_names": "default", "bound_service_account_namespaces": "bank", "token_policies": "reader",
	})
	overTLS.Enable("cert")
	overTLS.Do(http.MethodPost, "auth/cert/certs/shop", vaulttest.M{"certificate": string(authority.PEM), "token_policies": "default"})
	cert, _ := authority.Client("shop")
	foreign, foreignKey := other.Client("shop")

	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("vault", map[string]string{
		"token": srv.Token(vaulttest.M{"policies": []string{"reader"}}), "garbage": "c4n4ry garbage", "unknown": "hvs.c4n4ry",
		"role": srv.Do(http.MethodGet, "auth/approle/role/shop/role-id", nil)["role_id"].(string),
		"crt":  string(cert), "foreign-crt": string(foreign), "foreign-key": string(foreignKey), "other-ca": string(other.PEM),
	})
	return srv, overTLS
}

// TestOwnAccount logs in as the operator's own ServiceAccount, with a token for the audience that a cluster store names. Such a store is
// refused with an audience of the API server, and a namespaced store always.
func TestOwnAccount(t *testing.T) {
	t.Parallel()
	const (
		ns      = "own-account"
		own     = "spec.auth.kubernetes.operatorServiceAccount: "
		invalid = common.ReasonStoreInvalidSpec
	)
	srv := vaulttest.Start(t)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/*" { capabilities = ["read", "list"] }`)
	srv.Do(http.MethodPost, "secret/data/shop/db", vaulttest.M{"data": vaulttest.M{"password": "one"}})
	enableKubernetes(t, srv)
	srv.Do(http.MethodPost, "auth/kubernetes/role/operator", vaulttest.M{
		"bound_service_account_names": "provider-vault", "bound_service_account_namespaces": "provider-vault", "audience": "vault", "token_policies": "reader",
	})
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)
	spec := func(audience string) v1alpha1.VaultKVSpec {
		return v1alpha1.VaultKVSpec{Path: "secret", VaultServer: v1alpha1.VaultServer{Server: srv.URL, Auth: &v1alpha1.VaultAuth{Kubernetes: &v1alpha1.KubernetesAuth{
			Role: "operator", OperatorServiceAccount: &common.OperatorServiceAccount{Audience: audience},
		}}}}
	}
	reads := func() []string {
		all := []string{}
		for _, c := range srv.Calls() {
			if vaulttest.IsRead(c) || vaulttest.IsList(c) || c.Path == "auth/kubernetes/login" {
				all = append(all, c.Path)
			}
		}
		return all
	}
	suite.BadStores(t, ns, map[string]operatortest.BadStore{
		"Namespaced": {Why: "A namespaced store does not get the operator's own ServiceAccount.", Store: newStore(ns, spec("vault")), Want: invalid, Message: own + "a namespaced store is not allowed"},
		"APIServer":  {Why: "A token that the API server accepts is never sent.", Store: newClusterStore(spec("https://kubernetes.default.svc"), common.ClusterStoreSpec{}), Want: invalid, Message: own + "the API server accepts tokens for audience"},
	}, reads)

	s := newClusterStore(spec("vault"), common.ClusterStoreSpec{})
	s.Name = ns
	suite.For(t).Create(s)
	suite.For(t).Create(operatortest.ExternalSecret(ns, "db", "ClusterVaultKV", ns, "shop/db", "password"))
	suite.For(t).In(ns).WantSecret("db", "password", "one")
}

// TestBadAuth shows that the conditions of a store have the class and the message of a failed login. kv.TestAuth and kv.TestTLS have all
// messages.
func TestBadAuth(t *testing.T) {
	t.Parallel()
	type (
		auth = v1alpha1.VaultAuth
		spec = v1alpha1.VaultServer
	)
	const (
		ns          = "bad-auth"
		invalid     = common.ReasonStoreInvalidSpec
		failed      = common.ReasonStoreAuthFailed
		unreachable = common.ReasonStoreUnreachable
		noSecret    = "Secret bad-auth/none does not exist"
		noKey       = `Secret bad-auth/vault has no value under key "none"`
		noAccount   = "ServiceAccount bad-auth/missing does not exist"
	)
	srv, overTLS := badAuth(t, ns)
	suite.Start(t, "provider-vault", manifests.Permissions, newOperator)

	in := func(key string) common.SecretKeySelector { return ref("vault", key) }
	p := func(key string) *common.SecretKeySelector { return new(ref("vault", key)) }
	missing := new(ref("none", "key"))
	account := func(name string) *common.ServiceAccountSelector { return &common.ServiceAccountSelector{Name: name} }
	token := func(ref *common.SecretKeySelector) *auth { return &auth{TokenSecretRef: ref} }
	role := func(a v1alpha1.AppRoleAuth) *auth { return &auth{AppRole: &a} }
	kube := func(a v1alpha1.KubernetesAuth) *auth { return &auth{Kubernetes: &a} }
	ldap := func(a v1alpha1.PasswordAuth) *auth { return &auth{LDAP: &a} }
	key := func(id, key common.SecretKeySelector) *auth {
		return &auth{IAM: &v1alpha1.IAMAuth{Role: "r", SecretRef: &v1alpha1.IAMSecretRef{AccessKeyIDSecretRef: id, SecretAccessKeySecretRef: key}}}
	}
	google := func(ref common.SecretKeySelector) *auth {
		return &auth{GCP: &v1alpha1.GCPAuth{Role: "r", SecretRef: v1alpha1.GCPSecretRef{SecretAccessKeySecretRef: ref}}}
	}
	session := key(in("garbage"), in("garbage"))
	session.IAM.SecretRef.SessionTokenSecretRef = p("none")
	certificate := func(a v1alpha1.CertAuth) spec {
		return spec{Server: overTLS.Address, Authorities: common.Authorities{CABundle: overTLS.TLS.PEM}, Auth: &auth{Cert: &a}}
	}
	elsewhere := in("token")
	elsewhere.Namespace = "bank"
	cases := map[string]struct {
		why               string
		spec              spec
		want, wantMessage string
	}{
		"TokenNoSecret":  {"The Secret of the token does not exist.", spec{Auth: token(missing)}, invalid, "spec.auth.tokenSecretRef: " + noSecret},
		"TokenNoKey":     {"The Secret has no such key for the token.", spec{Auth: token(p("none"))}, invalid, "spec.auth.tokenSecretRef: " + noKey},
		"TokenUnknown":   {"Vault does not know the token.", spec{Auth: token(p("unknown"))}, failed, "spec.auth.tokenSecretRef: "},
		"TokenElsewhere": {"A namespaced store reads only Secrets in its own namespace.", spec{Auth: token(&elsewhere)}, invalid, "spec.auth.tokenSecretRef: Secret vault must not name a namespace"},

		"AppRoleWrongSecret": {"The secret id is wrong.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("garbage")})}, failed, "spec.auth.appRole.secretRef: "},

		"KubernetesNoAccount": {"The ServiceAccount does not exist.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: account("missing")})}, invalid, "spec.auth.kubernetes.serviceAccountRef: " + noAccount},
		"KubernetesRole":      {"The role is for another namespace.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "bank", ServiceAccountRef: account("default")})}, failed, "spec.auth.kubernetes.serviceAccountRef: "},

		"LDAPNoSecret": {"The Secret of the LDAP password does not exist.", spec{Auth: ldap(v1alpha1.PasswordAuth{Username: "bob", SecretRef: *missing})}, invalid, "spec.auth.ldap.secretRef: " + noSecret},

		"IAMNoID":      {"The Secret of the access key id does not exist.", spec{Auth: key(*missing, in("garbage"))}, invalid, "spec.auth.iam.secretRef.accessKeyIDSecretRef: " + noSecret},
		"IAMNoSession": {"The Secret has no such key for the session token.", spec{Auth: session}, invalid, "spec.auth.iam.secretRef.sessionTokenSecretRef: " + noKey},

		"GCPNoSecret": {"The Secret of the key does not exist.", spec{Auth: google(*missing)}, invalid, "spec.auth.gcp.secretRef.secretAccessKeySecretRef: " + noSecret},

		"CertNoKey":   {"The Secret has no such key for the private key.", certificate(v1alpha1.CertAuth{ClientCert: in("crt"), SecretRef: in("none")}), invalid, "spec.auth.cert.secretRef: " + noKey},
		"CertForeign": {"The certificate is signed by another authority.", certificate(v1alpha1.CertAuth{ClientCert: in("foreign-crt"), SecretRef: in("foreign-key")}), failed, "spec.auth.cert.clientCert: "},
		"UnknownCA":   {"The authority of the server is not trusted.", spec{Server: overTLS.Address, Auth: token(p("token"))}, unreachable, "spec.caBundle: "},
		"NoCASecret":  {"The Secret of caProvider does not exist.", spec{Server: overTLS.Address, Authorities: common.Authorities{CAProvider: &common.CAProvider{Type: "Secret", SecretKeySelector: *missing}}, Auth: token(p("token"))}, invalid, "spec.caProvider: " + noSecret},
	}
	reads := func() []string {
		all := []string{}
		for _, c := range srv.Calls() {
			if vaulttest.IsRead(c) || vaulttest.IsList(c) {
				all = append(all, c.Path)
			}
		}
		return all
	}
	at := func(s spec) v1alpha1.VaultKVSpec {
		if s.Server == "" {
			s.Server = srv.URL
		}
		return v1alpha1.VaultKVSpec{Path: "secret", VaultServer: s}
	}
	bad := map[string]operatortest.BadStore{}
	for name, tc := range cases {
		bad[name] = operatortest.BadStore{Why: tc.why, Store: newStore(ns, at(tc.spec)), Want: tc.want, Message: tc.wantMessage}
	}
	t.Run("VaultKV", func(t *testing.T) { suite.BadStores(t, ns, bad, reads) })
	t.Run("ClusterVaultKV", func(t *testing.T) {
		nowhere := ref("vault", "token")
		nowhere.Namespace = "nowhere"
		none := common.ClusterStoreSpec{}
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"TokenNoNamespace":   {Why: "Which namespace?", Store: newClusterStore(at(spec{Auth: token(p("token"))}), none), Want: invalid, Message: "spec.auth.tokenSecretRef: Secret vault needs a namespace"},
			"AccountNoNamespace": {Why: "The reference to a ServiceAccount needs a namespace, too.", Store: newClusterStore(at(spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: account("default")})}), none), Want: invalid, Message: "spec.auth.kubernetes.serviceAccountRef: ServiceAccount default needs a namespace"},
			"CANoNamespace":      {Why: "The reference to certificates needs a namespace, too.", Store: newClusterStore(at(spec{Authorities: common.Authorities{CAProvider: &common.CAProvider{Type: "Secret", SecretKeySelector: in("other-ca")}}, Auth: token(&nowhere)}), none), Want: invalid, Message: "spec.caProvider: Secret vault needs a namespace"},
		}, reads)

		// The login of a store with authenticationScope ManifestNamespace cannot be checked, so the
		// ExternalSecret reports its failure.
		s := newClusterStore(at(spec{Auth: token(&nowhere)}), common.ClusterStoreSpec{ScopeSpec: common.ScopeSpec{AuthenticationScope: common.ScopeManifestNamespace}})
		s.Name = "scoped"
		suite.For(t).Create(s)
		es := operatortest.ExternalSecret(ns, "scoped", "ClusterVaultKV", "scoped", "shop/db", "password")
		suite.For(t).Create(es)
		controlplane.Eventually(t, func() string {
			return cmp.Diff(`False SecretSyncedError Invalid: "shop/db" in ClusterVaultKV "scoped": spec.auth.tokenSecretRef: Secret vault must not name a namespace with authenticationScope ManifestNamespace; remove the namespace`, suite.For(t).Condition(es))
		})
	})
}
