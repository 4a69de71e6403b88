package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"testing"
	"time"

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

// An issuer signs tokens.
type issuer struct {
	t   testing.TB
	key ed25519.PrivateKey
}

func newIssuer(t testing.TB) issuer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{t, key}
}

// public returns the issuer's public key in PEM form, for verifiers.
func (i issuer) public() string {
	der, err := x509.MarshalPKIXPublicKey(i.key.Public())
	if err != nil {
		i.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// token returns a token for an audience that expires at end.
func (i issuer) token(audience string, end time.Time) string {
	claims, err := json.Marshal(vaulttest.M{"sub": "x", "aud": audience, "iat": end.Add(-time.Hour).Unix(), "exp": end.Unix()})
	if err != nil {
		i.t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`)) + "." + encode(claims)
	return text + "." + encode(ed25519.Sign(i.key, []byte(text)))
}

// badAuth starts a Vault with all auth methods that the test server can have, and creates a namespace with
// credentials for it.
func badAuth(t *testing.T, ns string) (srv, overTLS *vaulttest.Server) {
	t.Helper()
	srv, overTLS = vaulttest.Start(t), vaulttest.Start(t, vaulttest.WithTLS())
	authority, other, keys := vaulttest.NewAuthority(t), vaulttest.NewAuthority(t), newIssuer(t)
	srv.Mount("secret", "2")
	srv.Policy("reader", `path "secret/*" { capabilities = ["read", "list"] }`)
	srv.Enable("approle")
	srv.Do(http.MethodPost, "auth/approle/role/shop", vaulttest.M{"token_policies": "reader"})
	srv.Enable("userpass")
	srv.Do(http.MethodPost, "auth/userpass/users/bob", vaulttest.M{"password": "right", "token_policies": "reader"})
	srv.Enable("jwt")
	srv.Do(http.MethodPost, "auth/jwt/config", vaulttest.M{"jwt_validation_pubkeys": []string{keys.public()}})
	srv.Do(http.MethodPost, "auth/jwt/role/shop", vaulttest.M{"role_type": "jwt", "user_claim": "sub", "bound_audiences": "vault", "token_policies": "reader"})
	enableKubernetes(t, srv)
	srv.Do(http.MethodPost, "auth/kubernetes/role/shop", vaulttest.M{
		"bound_service_account_names": "default", "bound_service_account_namespaces": ns, "token_policies": "reader",
	})
	srv.Do(http.MethodPost, "auth/kubernetes/role/vault", vaulttest.M{
		"bound_service_account_names": "default", "bound_service_account_namespaces": ns, "audience": "vault", "token_policies": "reader",
	})
	srv.Do(http.MethodPost, "auth/kubernetes/role/bank", vaulttest.M{
		"bound_service_account_names": "default", "bound_service_account_namespaces": "bank", "token_policies": "reader",
	})
	overTLS.Enable("cert")
	overTLS.Do(http.MethodPost, "auth/cert/certs/shop", vaulttest.M{"certificate": string(authority.PEM), "token_policies": "default"})
	cert, certKey := authority.Client("shop")
	foreign, foreignKey := other.Client("shop")

	revoked := srv.Token(vaulttest.M{"policies": []string{"reader"}})
	srv.Do(http.MethodPost, "auth/token/revoke", vaulttest.M{"token": revoked})
	suite.For(t).Namespace(ns, nil)
	suite.For(t).In(ns).Source("vault", map[string]string{
		"token": srv.Token(vaulttest.M{"policies": []string{"reader"}}), "revoked": revoked, "garbage": "c4n4ry garbage", "blank": " \n", "unknown": "hvs.c4n4ry",
		"role":   srv.Do(http.MethodGet, "auth/approle/role/shop/role-id", nil)["role_id"].(string),
		"secret": srv.Do(http.MethodPost, "auth/approle/role/shop/secret-id", nil)["secret_id"].(string), "password": "right",
		"jwt": keys.token("vault", time.Now().Add(time.Hour)), "other-jwt": keys.token("other", time.Now().Add(time.Hour)),
		"expired-jwt": keys.token("vault", time.Now().Add(-time.Hour)), "foreign-jwt": newIssuer(t).token("vault", time.Now().Add(time.Hour)),
		"crt": string(cert), "crt-key": string(certKey), "foreign-crt": string(foreign), "foreign-key": string(foreignKey), "other-ca": string(other.PEM),
	})
	return srv, overTLS
}

func TestBadAuth(t *testing.T) {
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
	account := func(name string, audiences ...string) *common.ServiceAccountSelector {
		return &common.ServiceAccountSelector{Name: name, Audiences: audiences}
	}
	token := func(ref *common.SecretKeySelector) *auth { return &auth{TokenSecretRef: ref} }
	role := func(a v1alpha1.AppRoleAuth) *auth { return &auth{AppRole: &a} }
	kube := func(a v1alpha1.KubernetesAuth) *auth { return &auth{Kubernetes: &a} }
	jwt := func(a v1alpha1.JWTAuth) *auth { return &auth{JWT: &a} }
	user := func(a v1alpha1.PasswordAuth) *auth { return &auth{UserPass: &a} }
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
		"TokenBlank":     {"The token is blank.", spec{Auth: token(p("blank"))}, invalid, "spec.auth.tokenSecretRef: "},
		"TokenGarbage":   {"The token contains characters that no token can have.", spec{Auth: token(p("garbage"))}, invalid, "spec.auth.tokenSecretRef: "},
		"TokenUnknown":   {"Vault does not know the token.", spec{Auth: token(p("unknown"))}, failed, "spec.auth.tokenSecretRef: "},
		"TokenRevoked":   {"The token was revoked.", spec{Auth: token(p("revoked"))}, failed, "spec.auth.tokenSecretRef: "},
		"TokenElsewhere": {"A namespaced store reads only Secrets in its own namespace.", spec{Auth: token(&elsewhere)}, invalid, "spec.auth.tokenSecretRef: Secret vault must not name a namespace"},

		"AppRoleNoSecret":    {"The Secret of the secret id does not exist.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: *missing})}, invalid, "spec.auth.appRole.secretRef: " + noSecret},
		"AppRoleNoKey":       {"The Secret has no such key for the secret id.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("none")})}, invalid, "spec.auth.appRole.secretRef: " + noKey},
		"AppRoleNoRole":      {"The Secret of the role id does not exist.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: missing, SecretRef: in("secret")})}, invalid, "spec.auth.appRole.roleRef: " + noSecret},
		"AppRoleNoRoleKey":   {"The Secret has no such key for the role id.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("none"), SecretRef: in("secret")})}, invalid, "spec.auth.appRole.roleRef: " + noKey},
		"AppRoleWrongRole":   {"The role id does not exist.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleID: "other", SecretRef: in("secret")})}, failed, "spec.auth.appRole.secretRef: Vault does not accept the secret id with this role id"},
		"AppRoleWrongSecret": {"The secret id is wrong.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("garbage")})}, failed, "spec.auth.appRole.secretRef: "},
		"AppRoleWrongPath":   {"The auth method is not mounted at that path.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("secret"), Path: "nowhere"})}, failed, "check both, and path"},
		"AppRolePathUp":      {"A path with .. is rejected.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("secret"), Path: "../sys"})}, invalid, "spec.auth.appRole.path: "},

		"KubernetesNoAccount": {"The ServiceAccount does not exist.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: account("missing")})}, invalid, "spec.auth.kubernetes.serviceAccountRef: " + noAccount},
		"KubernetesAudience":  {"The token has another audience than the role requires.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "vault", ServiceAccountRef: account("default", "https://elsewhere.example")})}, failed, "spec.auth.kubernetes.serviceAccountRef: "},
		"KubernetesNoRole":    {"The role of the auth method kubernetes does not exist.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "none", ServiceAccountRef: account("default")})}, failed, "spec.auth.kubernetes.role: "},
		"KubernetesRole":      {"The role is for another namespace.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "bank", ServiceAccountRef: account("default")})}, failed, "spec.auth.kubernetes.serviceAccountRef: "},
		"KubernetesNoSecret":  {"The Secret of the Kubernetes token does not exist.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: missing})}, invalid, "spec.auth.kubernetes.secretRef: " + noSecret},
		"KubernetesNoKey":     {"The Secret has no such key for the Kubernetes token.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("none")})}, invalid, "spec.auth.kubernetes.secretRef: " + noKey},
		"KubernetesGarbage":   {"The Kubernetes token is not a token.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("garbage")})}, failed, "spec.auth.kubernetes.secretRef: "},
		"KubernetesForeign":   {"The Kubernetes token is not signed by the API server.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("jwt")})}, failed, "spec.auth.kubernetes.secretRef: "},

		"JWTNoSecret":  {"The Secret of the JWT does not exist.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: missing})}, invalid, "spec.auth.jwt.secretRef: " + noSecret},
		"JWTNoKey":     {"The Secret has no such key for the JWT.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("none")})}, invalid, "spec.auth.jwt.secretRef: " + noKey},
		"JWTGarbage":   {"The JWT is not a JWT.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("garbage")})}, failed, "spec.auth.jwt.secretRef: "},
		"JWTExpired":   {"The JWT has expired.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("expired-jwt")})}, failed, "spec.auth.jwt.secretRef: "},
		"JWTForeign":   {"The JWT is signed by another issuer.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("foreign-jwt")})}, failed, "spec.auth.jwt.secretRef: "},
		"JWTAudience":  {"The JWT has another audience.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("other-jwt")})}, failed, "spec.auth.jwt.secretRef: "},
		"JWTNoRole":    {"The role of the auth method jwt does not exist.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "none", SecretRef: p("jwt")})}, failed, "spec.auth.jwt.role: "},
		"JWTUnset":     {"The auth method jwt has no default role.", spec{Auth: jwt(v1alpha1.JWTAuth{SecretRef: p("jwt")})}, failed, "spec.auth.jwt.role: "},
		"JWTNoAccount": {"The ServiceAccount does not exist.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", ServiceAccountRef: account("missing")})}, invalid, "spec.auth.jwt.serviceAccountRef: " + noAccount},
		"JWTAccount":   {"Vault does not know the issuer of the ServiceAccount token.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", ServiceAccountRef: account("default")})}, failed, "spec.auth.jwt.serviceAccountRef: "},

		"UserPassNoSecret": {"The Secret of the password does not exist.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: *missing})}, invalid, "spec.auth.userPass.secretRef: " + noSecret},
		"UserPassNoKey":    {"The Secret has no such key for the password.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: in("none")})}, invalid, "spec.auth.userPass.secretRef: " + noKey},
		"UserPassWrong":    {"The password is wrong.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: in("garbage")})}, failed, "spec.auth.userPass.secretRef: "},
		"UserPassUnknown":  {"The user does not exist.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "eve", SecretRef: in("password")})}, failed, "spec.auth.userPass.secretRef: "},
		"UserPassUp":       {"A user name with a path is rejected.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "../x", SecretRef: in("password")})}, invalid, "spec.auth.userPass.username: "},

		"LDAPNoSecret": {"The Secret of the LDAP password does not exist.", spec{Auth: ldap(v1alpha1.PasswordAuth{Username: "bob", SecretRef: *missing})}, invalid, "spec.auth.ldap.secretRef: " + noSecret},
		"LDAPNoKey":    {"The Secret has no such key for the LDAP password.", spec{Auth: ldap(v1alpha1.PasswordAuth{Username: "bob", SecretRef: in("none")})}, invalid, "spec.auth.ldap.secretRef: " + noKey},

		"IAMNoID":      {"The Secret of the access key id does not exist.", spec{Auth: key(*missing, in("garbage"))}, invalid, "spec.auth.iam.secretRef.accessKeyIDSecretRef: " + noSecret},
		"IAMNoIDKey":   {"The Secret has no such key for the access key id.", spec{Auth: key(in("none"), in("garbage"))}, invalid, "spec.auth.iam.secretRef.accessKeyIDSecretRef: " + noKey},
		"IAMNoKey":     {"The Secret of the secret access key does not exist.", spec{Auth: key(in("garbage"), *missing)}, invalid, "spec.auth.iam.secretRef.secretAccessKeySecretRef: " + noSecret},
		"IAMNoSession": {"The Secret has no such key for the session token.", spec{Auth: session}, invalid, "spec.auth.iam.secretRef.sessionTokenSecretRef: " + noKey},
		"IAMNoAccount": {"The ServiceAccount does not exist.", spec{Auth: &auth{IAM: &v1alpha1.IAMAuth{Role: "r", AWSIAMRole: "arn:aws:iam::000000000000:role/r", ServiceAccountRef: account("missing")}}}, invalid, "spec.auth.iam.serviceAccountRef: " + noAccount},

		"GCPNoSecret": {"The Secret of the key does not exist.", spec{Auth: google(*missing)}, invalid, "spec.auth.gcp.secretRef.secretAccessKeySecretRef: " + noSecret},
		"GCPNoKey":    {"The Secret has no such key for the key of the service account.", spec{Auth: google(in("none"))}, invalid, "spec.auth.gcp.secretRef.secretAccessKeySecretRef: " + noKey},
		"GCPGarbage":  {"The key of the service account is not a key file.", spec{Auth: google(in("garbage"))}, invalid, "spec.auth.gcp.secretRef.secretAccessKeySecretRef: is not the JSON key file"},

		"CertNoSecret":    {"The Secret of the certificate does not exist.", certificate(v1alpha1.CertAuth{ClientCert: *missing, SecretRef: in("crt-key")}), invalid, "spec.auth.cert.clientCert: " + noSecret},
		"CertNoKey":       {"The Secret has no such key for the private key.", certificate(v1alpha1.CertAuth{ClientCert: in("crt"), SecretRef: in("none")}), invalid, "spec.auth.cert.secretRef: " + noKey},
		"CertGarbage":     {"The certificate and the private key are not in PEM form.", certificate(v1alpha1.CertAuth{ClientCert: in("garbage"), SecretRef: in("garbage")}), invalid, "spec.auth.cert.clientCert and spec.auth.cert.secretRef: "},
		"CertForeignKey":  {"The private key does not match the certificate.", certificate(v1alpha1.CertAuth{ClientCert: in("crt"), SecretRef: in("foreign-key")}), invalid, "spec.auth.cert.clientCert and spec.auth.cert.secretRef: "},
		"CertForeign":     {"The certificate is signed by another authority.", certificate(v1alpha1.CertAuth{ClientCert: in("foreign-crt"), SecretRef: in("foreign-key")}), failed, "spec.auth.cert.clientCert: "},
		"CertNoRole":      {"The role of the auth method cert does not exist.", certificate(v1alpha1.CertAuth{ClientCert: in("crt"), SecretRef: in("crt-key"), Role: "none"}), failed, "check its authority, its dates, vaultRole and path"},
		"UnknownCA":       {"The authority of the server is not trusted.", spec{Server: overTLS.Address, Auth: token(p("token"))}, unreachable, "spec.caBundle: "},
		"OtherCA":         {"Only another authority is trusted.", spec{Server: overTLS.Address, Authorities: common.Authorities{CAProvider: &common.CAProvider{Type: "Secret", SecretKeySelector: in("other-ca")}}, Auth: token(p("token"))}, unreachable, "spec.caProvider: "},
		"GarbageCA":       {"caBundle contains no certificate.", spec{Server: overTLS.Address, Authorities: common.Authorities{CABundle: []byte("c4n4ry")}, Auth: token(p("token"))}, invalid, "spec.caBundle: has no certificate in PEM form"},
		"GarbageProvider": {"The Secret of caProvider contains no certificate.", spec{Server: overTLS.Address, Authorities: common.Authorities{CAProvider: &common.CAProvider{Type: "Secret", SecretKeySelector: in("garbage")}}, Auth: token(p("token"))}, invalid, "spec.caProvider: has no certificate in PEM form"},
		"NoCASecret":      {"The Secret of caProvider does not exist.", spec{Server: overTLS.Address, Authorities: common.Authorities{CAProvider: &common.CAProvider{Type: "Secret", SecretKeySelector: *missing}}, Auth: token(p("token"))}, invalid, "spec.caProvider: " + noSecret},
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
		nowhere, byAccount := ref("vault", "token"), account("default")
		nowhere.Namespace, byAccount.Namespace = "nowhere", "nowhere"
		none := common.ClusterStoreSpec{}
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"TokenNoNamespace":   {Why: "Which namespace?", Store: newClusterStore(at(spec{Auth: token(p("token"))}), none), Want: invalid, Message: "spec.auth.tokenSecretRef: Secret vault needs a namespace"},
			"AppRoleNoNamespace": {Why: "Each reference needs a namespace of its own.", Store: newClusterStore(at(spec{Auth: role(v1alpha1.AppRoleAuth{RoleID: "x", SecretRef: in("secret")})}), none), Want: invalid, Message: "spec.auth.appRole.secretRef: Secret vault needs a namespace"},
			"AccountNoNamespace": {Why: "The reference to a ServiceAccount needs a namespace, too.", Store: newClusterStore(at(spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: account("default")})}), none), Want: invalid, Message: "spec.auth.kubernetes.serviceAccountRef: ServiceAccount default needs a namespace"},
			"CANoNamespace":      {Why: "The reference to certificates needs a namespace, too.", Store: newClusterStore(at(spec{Authorities: common.Authorities{CAProvider: &common.CAProvider{Type: "Secret", SecretKeySelector: in("other-ca")}}, Auth: token(&nowhere)}), none), Want: invalid, Message: "spec.caProvider: Secret vault needs a namespace"},
			"NoSecret":           {Why: "The Secret does not exist in that namespace.", Store: newClusterStore(at(spec{Auth: token(&nowhere)}), none), Want: invalid, Message: "spec.auth.tokenSecretRef: Secret nowhere/vault does not exist"},
			"NoAccount":          {Why: "The ServiceAccount does not exist in that namespace.", Store: newClusterStore(at(spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: byAccount})}), none), Want: invalid, Message: "spec.auth.kubernetes.serviceAccountRef: ServiceAccount nowhere/default does not exist"},
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
