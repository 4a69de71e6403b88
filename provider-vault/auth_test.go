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

// public is what verifies the tokens, in PEM form.
func (i issuer) public() string {
	der, err := x509.MarshalPKIXPublicKey(i.key.Public())
	if err != nil {
		i.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// token is one for an audience that ends at a time.
func (i issuer) token(audience string, end time.Time) string {
	claims, err := json.Marshal(vaulttest.M{"sub": "x", "aud": audience, "iat": end.Add(-time.Hour).Unix(), "exp": end.Unix()})
	if err != nil {
		i.t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`)) + "." + encode(claims)
	return text + "." + encode(ed25519.Sign(i.key, []byte(text)))
}

// badAuth is a Vault with all auth methods that it can have, and a namespace with credentials for it.
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
	suite.Namespace(t, ns, nil)
	suite.Secret(t, ns, "vault", map[string]string{
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
		noAccount   = "ServiceAccount bad-auth/nobody does not exist"
	)
	srv, overTLS := badAuth(t, ns)
	suite.Start(t, "provider-vault", manifests.Rights, newOperator)

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
	jwtOf := func(s *common.ServiceAccountSelector) *v1alpha1.ServiceAccountToken {
		return &v1alpha1.ServiceAccountToken{ServiceAccountRef: *s}
	}
	user := func(a v1alpha1.PasswordAuth) *auth { return &auth{UserPass: &a} }
	ldap := func(a v1alpha1.PasswordAuth) *auth { return &auth{LDAP: &a} }
	key := func(id, key common.SecretKeySelector) *auth {
		return &auth{IAM: &v1alpha1.IAMAuth{Role: "r", SecretRef: &v1alpha1.IAMSecretRef{AccessKeyIDSecretRef: id, SecretAccessKeySecretRef: key}}}
	}
	session := key(in("garbage"), in("garbage"))
	session.IAM.SecretRef.SessionTokenSecretRef = p("none")
	certificate := func(a v1alpha1.CertAuth) spec {
		return spec{Server: overTLS.Address, CABundle: overTLS.TLS.PEM, Auth: &auth{Cert: &a}}
	}
	elsewhere := in("token")
	elsewhere.Namespace = "bank"
	cases := map[string]struct {
		why        string
		spec       spec
		want, says string
	}{
		"TokenNoSecret":  {"The token is nowhere.", spec{Auth: token(missing)}, invalid, "spec.auth.tokenSecretRef: " + noSecret},
		"TokenNoKey":     {"It is not under that key.", spec{Auth: token(p("none"))}, invalid, "spec.auth.tokenSecretRef: " + noKey},
		"TokenBlank":     {"It is blank.", spec{Auth: token(p("blank"))}, invalid, "spec.auth.tokenSecretRef: "},
		"TokenGarbage":   {"It cannot be one.", spec{Auth: token(p("garbage"))}, invalid, "spec.auth.tokenSecretRef: "},
		"TokenUnknown":   {"Vault does not know it.", spec{Auth: token(p("unknown"))}, failed, "spec.auth.tokenSecretRef: "},
		"TokenRevoked":   {"It was revoked.", spec{Auth: token(p("revoked"))}, failed, "spec.auth.tokenSecretRef: "},
		"TokenElsewhere": {"A namespaced store reads beside itself.", spec{Auth: token(&elsewhere)}, invalid, "spec.auth.tokenSecretRef: Secret vault must not name a namespace"},

		"AppRoleNoSecret":    {"The secret id is nowhere.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: *missing})}, invalid, "spec.auth.appRole.secretRef: " + noSecret},
		"AppRoleNoKey":       {"It is not under that key.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("none")})}, invalid, "spec.auth.appRole.secretRef: " + noKey},
		"AppRoleNoRole":      {"The role id is nowhere.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: missing, SecretRef: in("secret")})}, invalid, "spec.auth.appRole.roleRef: " + noSecret},
		"AppRoleNoRoleKey":   {"It is not under that key.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("none"), SecretRef: in("secret")})}, invalid, "spec.auth.appRole.roleRef: " + noKey},
		"AppRoleWrongRole":   {"There is no such role id.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleID: "other", SecretRef: in("secret")})}, failed, "spec.auth.appRole.secretRef: Vault does not accept the secret id with this role id"},
		"AppRoleWrongSecret": {"The secret id is wrong.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("garbage")})}, failed, "spec.auth.appRole.secretRef: "},
		"AppRoleWrongPath":   {"It is not mounted there.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("secret"), Path: "nowhere"})}, failed, "check both, and path"},
		"AppRolePathUp":      {"A path cannot lead out of auth.", spec{Auth: role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: in("secret"), Path: "../sys"})}, invalid, "spec.auth.appRole.path: "},

		"KubernetesNoAccount": {"The ServiceAccount does not exist.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: account("nobody")})}, invalid, "spec.auth.kubernetes.serviceAccountRef: " + noAccount},
		"KubernetesAudience":  {"Its token is not for whom the role wants it to be.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "vault", ServiceAccountRef: account("default", "https://elsewhere.example")})}, failed, "spec.auth.kubernetes.serviceAccountRef: "},
		"KubernetesNoRole":    {"There is no such role.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "none", ServiceAccountRef: account("default")})}, failed, "spec.auth.kubernetes.role: "},
		"KubernetesRole":      {"The role is for another namespace.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "bank", ServiceAccountRef: account("default")})}, failed, "spec.auth.kubernetes.serviceAccountRef: "},
		"KubernetesNoSecret":  {"The token is nowhere.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: missing})}, invalid, "spec.auth.kubernetes.secretRef: " + noSecret},
		"KubernetesNoKey":     {"It is not under that key.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("none")})}, invalid, "spec.auth.kubernetes.secretRef: " + noKey},
		"KubernetesGarbage":   {"It is none.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("garbage")})}, failed, "spec.auth.kubernetes.secretRef: "},
		"KubernetesForeign":   {"The API server did not sign it.", spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("jwt")})}, failed, "spec.auth.kubernetes.secretRef: "},

		"JWTNoSecret":  {"The token is nowhere.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: missing})}, invalid, "spec.auth.jwt.secretRef: " + noSecret},
		"JWTNoKey":     {"It is not under that key.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("none")})}, invalid, "spec.auth.jwt.secretRef: " + noKey},
		"JWTGarbage":   {"It is none.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("garbage")})}, failed, "spec.auth.jwt.secretRef: "},
		"JWTExpired":   {"It has expired.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("expired-jwt")})}, failed, "spec.auth.jwt.secretRef: "},
		"JWTForeign":   {"Somebody else signed it.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("foreign-jwt")})}, failed, "spec.auth.jwt.secretRef: "},
		"JWTAudience":  {"It is for somebody else.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("other-jwt")})}, failed, "spec.auth.jwt.secretRef: "},
		"JWTNoRole":    {"There is no such role.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "none", SecretRef: p("jwt")})}, failed, "spec.auth.jwt.role: "},
		"JWTUnset":     {"There is no default role either.", spec{Auth: jwt(v1alpha1.JWTAuth{SecretRef: p("jwt")})}, failed, "spec.auth.jwt.role: "},
		"JWTNoAccount": {"The ServiceAccount does not exist.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", KubernetesServiceAccountToken: jwtOf(account("nobody"))})}, invalid, "spec.auth.jwt.kubernetesServiceAccountToken.serviceAccountRef: " + noAccount},
		"JWTAccount":   {"Vault does not know who signed its token.", spec{Auth: jwt(v1alpha1.JWTAuth{Role: "shop", KubernetesServiceAccountToken: jwtOf(account("default"))})}, failed, "spec.auth.jwt.kubernetesServiceAccountToken.serviceAccountRef: "},

		"UserPassNoSecret": {"The password is nowhere.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: *missing})}, invalid, "spec.auth.userPass.secretRef: " + noSecret},
		"UserPassNoKey":    {"It is not under that key.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: in("none")})}, invalid, "spec.auth.userPass.secretRef: " + noKey},
		"UserPassWrong":    {"It is wrong.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: in("garbage")})}, failed, "spec.auth.userPass.secretRef: "},
		"UserPassNobody":   {"There is nobody of that name.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "eve", SecretRef: in("password")})}, failed, "spec.auth.userPass.secretRef: "},
		"UserPassUp":       {"A name cannot lead elsewhere.", spec{Auth: user(v1alpha1.PasswordAuth{Username: "../x", SecretRef: in("password")})}, invalid, "spec.auth.userPass.username: "},

		"LDAPNoSecret": {"The password is nowhere.", spec{Auth: ldap(v1alpha1.PasswordAuth{Username: "bob", SecretRef: *missing})}, invalid, "spec.auth.ldap.secretRef: " + noSecret},
		"LDAPNoKey":    {"It is not under that key.", spec{Auth: ldap(v1alpha1.PasswordAuth{Username: "bob", SecretRef: in("none")})}, invalid, "spec.auth.ldap.secretRef: " + noKey},

		"IAMNoID":      {"The access key id is nowhere.", spec{Auth: key(*missing, in("garbage"))}, invalid, "spec.auth.iam.secretRef.accessKeyIDSecretRef: " + noSecret},
		"IAMNoIDKey":   {"It is not under that key.", spec{Auth: key(in("none"), in("garbage"))}, invalid, "spec.auth.iam.secretRef.accessKeyIDSecretRef: " + noKey},
		"IAMNoKey":     {"The secret key is nowhere.", spec{Auth: key(in("garbage"), *missing)}, invalid, "spec.auth.iam.secretRef.secretAccessKeySecretRef: " + noSecret},
		"IAMNoSession": {"Nor is the session token.", spec{Auth: session}, invalid, "spec.auth.iam.secretRef.sessionTokenSecretRef: " + noKey},
		"IAMNoAccount": {"The ServiceAccount does not exist.", spec{Auth: &auth{IAM: &v1alpha1.IAMAuth{Role: "r", AWSIAMRole: "arn:aws:iam::000000000000:role/r", JWT: &v1alpha1.IAMJWT{ServiceAccountRef: *account("nobody")}}}}, invalid, "spec.auth.iam.jwt.serviceAccountRef: " + noAccount},

		"CertNoSecret":    {"The certificate is nowhere.", certificate(v1alpha1.CertAuth{ClientCert: *missing, SecretRef: in("crt-key")}), invalid, "spec.auth.cert.clientCert: " + noSecret},
		"CertNoKey":       {"Its key is nowhere.", certificate(v1alpha1.CertAuth{ClientCert: in("crt"), SecretRef: in("none")}), invalid, "spec.auth.cert.secretRef: " + noKey},
		"CertGarbage":     {"They are none.", certificate(v1alpha1.CertAuth{ClientCert: in("garbage"), SecretRef: in("garbage")}), invalid, "spec.auth.cert.clientCert and spec.auth.cert.secretRef: "},
		"CertForeignKey":  {"They do not belong together.", certificate(v1alpha1.CertAuth{ClientCert: in("crt"), SecretRef: in("foreign-key")}), invalid, "spec.auth.cert.clientCert and spec.auth.cert.secretRef: "},
		"CertForeign":     {"Somebody else signed the certificate.", certificate(v1alpha1.CertAuth{ClientCert: in("foreign-crt"), SecretRef: in("foreign-key")}), failed, "spec.auth.cert.clientCert: "},
		"CertNoRole":      {"There is no such role.", certificate(v1alpha1.CertAuth{ClientCert: in("crt"), SecretRef: in("crt-key"), Role: "none"}), failed, "check its authority, its dates, vaultRole and path"},
		"UnknownCA":       {"Nobody trusts the authority.", spec{Server: overTLS.Address, Auth: token(p("token"))}, unreachable, "spec.caBundle: "},
		"OtherCA":         {"Another one is trusted.", spec{Server: overTLS.Address, CAProvider: &v1alpha1.CAProvider{Type: "Secret", SecretKeySelector: in("other-ca")}, Auth: token(p("token"))}, unreachable, "spec.caProvider: "},
		"GarbageCA":       {"It is none.", spec{Server: overTLS.Address, CABundle: []byte("c4n4ry"), Auth: token(p("token"))}, invalid, "spec.caBundle: holds no certificate in PEM form"},
		"GarbageProvider": {"Nor is this.", spec{Server: overTLS.Address, CAProvider: &v1alpha1.CAProvider{Type: "Secret", SecretKeySelector: in("garbage")}, Auth: token(p("token"))}, invalid, "spec.caProvider: holds no certificate in PEM form"},
		"NoCASecret":      {"It is nowhere.", spec{Server: overTLS.Address, CAProvider: &v1alpha1.CAProvider{Type: "Secret", SecretKeySelector: *missing}, Auth: token(p("token"))}, invalid, "spec.caProvider: " + noSecret},
		"Ambient":         {"An operator brings no identity along.", spec{}, invalid, "spec.auth: "},
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
		bad[name] = operatortest.BadStore{Why: tc.why, Store: newStore(ns, at(tc.spec)), Want: tc.want, Says: tc.says}
	}
	t.Run("VaultKV", func(t *testing.T) { suite.BadStores(t, ns, bad, reads) })
	t.Run("ClusterVaultKV", func(t *testing.T) {
		nowhere, byAccount := ref("vault", "token"), account("default")
		nowhere.Namespace, byAccount.Namespace = "nowhere", "nowhere"
		none := common.ClusterStoreSpec{}
		suite.BadStores(t, ns, map[string]operatortest.BadStore{
			"TokenNoNamespace":   {Why: "Which namespace?", Store: newClusterStore(at(spec{Auth: token(p("token"))}), none), Want: invalid, Says: "spec.auth.tokenSecretRef: Secret vault needs a namespace"},
			"AppRoleNoNamespace": {Why: "Each reference names its own.", Store: newClusterStore(at(spec{Auth: role(v1alpha1.AppRoleAuth{RoleID: "x", SecretRef: in("secret")})}), none), Want: invalid, Says: "spec.auth.appRole.secretRef: Secret vault needs a namespace"},
			"AccountNoNamespace": {Why: "Those of ServiceAccounts, too.", Store: newClusterStore(at(spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: account("default")})}), none), Want: invalid, Says: "spec.auth.kubernetes.serviceAccountRef: ServiceAccount default needs a namespace"},
			"CANoNamespace":      {Why: "And that of certificates.", Store: newClusterStore(at(spec{CAProvider: &v1alpha1.CAProvider{Type: "Secret", SecretKeySelector: in("other-ca")}, Auth: token(&nowhere)}), none), Want: invalid, Says: "spec.caProvider: Secret vault needs a namespace"},
			"NoSecret":           {Why: "It is not there.", Store: newClusterStore(at(spec{Auth: token(&nowhere)}), none), Want: invalid, Says: "spec.auth.tokenSecretRef: Secret nowhere/vault does not exist"},
			"NoAccount":          {Why: "Nor is this.", Store: newClusterStore(at(spec{Auth: kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: byAccount})}), none), Want: invalid, Says: "spec.auth.kubernetes.serviceAccountRef: ServiceAccount nowhere/default does not exist"},
		}, reads)

		// Of a store that logs in as each namespace's own identity there is none to try, so that the object
		// tells.
		s := newClusterStore(at(spec{Auth: token(&nowhere)}), common.ClusterStoreSpec{ScopeSpec: common.ScopeSpec{AuthenticationScope: common.ScopeManifestNamespace}})
		s.Name = "beside"
		suite.Create(t, s)
		es := operatortest.ExternalSecret(ns, "beside", "ClusterVaultKV", "beside", "shop/db", "password")
		suite.Create(t, es)
		controlplane.Eventually(t, func() string {
			return cmp.Diff(`False SecretSyncedError Invalid: "shop/db" in ClusterVaultKV "beside": spec.auth.tokenSecretRef: Secret vault must not name a namespace with authenticationScope ManifestNamespace; remove the namespace`, suite.Says(t, es))
		})
	})
}
