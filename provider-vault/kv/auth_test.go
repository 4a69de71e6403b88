package kv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/provider-vault/vaulttest"
)

// An issuer signs JSON web tokens.
type issuer struct {
	t   testing.TB
	key *ecdsa.PrivateKey
}

func newIssuer(t testing.TB) issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{t, key}
}

func (i issuer) public() string {
	der, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		i.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// token returns a token of the ServiceAccount shop/reader for an audience.
func (i issuer) token(audience string, lifetime time.Duration) string {
	claims, err := json.Marshal(M{
		"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:shop:reader", "aud": []string{audience},
		"exp": time.Now().Add(lifetime).Unix(), "iat": time.Now().Add(-time.Hour).Unix(), "nbf": time.Now().Add(-time.Hour).Unix(),
		"kubernetes.io": M{"namespace": "shop", "serviceaccount": M{"name": "reader", "uid": "1-2-3"}},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"ES256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return text + "." + enc.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// reviewer is a Kubernetes API that reviews tokens, and accepts only good.
func reviewer(t testing.TB, good string) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Spec struct {
				Token string `json:"token"`
			} `json:"spec"`
		}
		known := json.NewDecoder(r.Body).Decode(&review) == nil && review.Spec.Token == good
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(M{ // Vault checks the answer.
			"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
			"status": M{"authenticated": known, "audiences": []string{"https://kubernetes.default.svc"}, "user": M{"username": "system:serviceaccount:shop:reader", "uid": "1-2-3", "groups": []string{"system:serviceaccounts"}}},
		})
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// methods starts a server with all auth methods that need no other real server, and returns the credentials for
// them.
func methods(t *testing.T) (*vaulttest.Server, creds) {
	t.Helper()
	srv, secrets := vault(t, "1h")
	mustPut(t, srv, "shop/db", db)
	keys := newIssuer(t)
	api := keys.token("https://kubernetes.default.svc", time.Hour)

	srv.Enable("userpass")
	srv.Do(http.MethodPost, "auth/userpass/users/bob", M{"password": " blank ", "token_policies": "reader"})
	srv.Enable("jwt")
	srv.Do(http.MethodPost, "auth/jwt/config", M{"jwt_validation_pubkeys": []string{keys.public()}})
	role := M{"role_type": "jwt", "user_claim": "sub", "bound_audiences": "vault", "token_policies": "reader"}
	srv.Do(http.MethodPost, "auth/jwt/role/shop", role)
	srv.Do(http.MethodPost, "auth/jwt/role/browser", M{"role_type": "oidc", "user_claim": "sub", "allowed_redirect_uris": "http://127.0.0.1/"})
	stopped := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(M{"keys": []M{}}) // Vault checks the answer.
	}))
	srv.Do(http.MethodPost, "sys/auth/gone", M{"type": "jwt"})
	srv.Do(http.MethodPost, "auth/gone/config", M{"jwks_url": stopped.URL})
	srv.Do(http.MethodPost, "auth/gone/role/shop", role)
	stopped.Close()
	srv.Enable("kubernetes")
	ca, _ := vaulttest.NewAuthority(t).Server(time.Now().Add(time.Hour)) // OpenBao requires one, also for plain HTTP.
	srv.Do(http.MethodPost, "auth/kubernetes/config", M{
		"kubernetes_host": reviewer(t, api), "kubernetes_ca_cert": string(ca), "disable_local_ca_jwt": true, "token_reviewer_jwt": api,
	})
	srv.Do(http.MethodPost, "sys/auth/raw", M{"type": "kubernetes"}) // This auth method has a role, but no configuration.
	for _, mount := range []string{"kubernetes", "raw"} {
		srv.Do(http.MethodPost, "auth/"+mount+"/role/shop", M{
			"bound_service_account_names": "reader", "bound_service_account_namespaces": "shop", "token_policies": "reader",
		})
	}

	maps.Copy(secrets, creds{
		"token": srv.Token(M{"policies": []string{"reader"}}), "password": " blank ", "garbage": "c4n4ry garbage", "blank": " \n",
		"jwt": keys.token("vault", time.Hour), "other-jwt": keys.token("other", time.Hour), "expired-jwt": keys.token("vault", -time.Minute),
		"api-jwt": api, "foreign-jwt": newIssuer(t).token("vault", time.Hour),
		"token of reader for [vault]": keys.token("vault", time.Hour),
		"token of reader for [other]": keys.token("other", time.Hour),
		"token of reader for []":      api,
		"own token for vault":         keys.token("vault", time.Hour),
		"key-id":                      "AKIDEXAMPLE", "key": "c4n4ry",
	})
	secrets["revoked"] = srv.Token(M{"policies": []string{"reader"}})
	srv.Do(http.MethodPost, "auth/token/revoke", M{"token": secrets["revoked"]})
	return srv, secrets
}

func account(name string, audiences ...string) *common.ServiceAccountSelector {
	return &common.ServiceAccountSelector{Name: name, Audiences: audiences}
}

func own(audience string) *common.OperatorServiceAccount {
	return &common.OperatorServiceAccount{Audience: audience}
}

func TestAuth(t *testing.T) {
	srv, secrets := methods(t)
	type auth = v1alpha1.VaultAuth
	roleID := secrets["role"]
	role := func(a v1alpha1.AppRoleAuth) auth { return auth{AppRole: &a} }
	kube := func(a v1alpha1.KubernetesAuth) auth { return auth{Kubernetes: &a} }
	jwt := func(a v1alpha1.JWTAuth) auth { return auth{JWT: &a} }
	user := func(a v1alpha1.PasswordAuth) auth { return auth{UserPass: &a} }
	p := func(key string) *common.SecretKeySelector { return new(ref(key)) }
	cases := map[string]struct {
		auth auth
		want string // the start of the error; empty if the read succeeds
	}{
		"Token":        {auth{TokenSecretRef: p("token")}, ""},
		"TokenMissing": {auth{TokenSecretRef: p("none")}, "Invalid: spec.auth.tokenSecretRef: Secret shop/vault has no value"},
		"TokenBlank":   {auth{TokenSecretRef: p("blank")}, "Invalid: spec.auth.tokenSecretRef: the value is blank"},
		"TokenGarbage": {auth{TokenSecretRef: p("garbage")}, "Invalid: spec.auth.tokenSecretRef: the value is not a token"},
		"TokenWrong":   {auth{TokenSecretRef: p("wrong")}, "Denied: spec.auth.tokenSecretRef: Vault does not accept"},
		"TokenRevoked": {auth{TokenSecretRef: p("revoked")}, "Denied: spec.auth.tokenSecretRef: Vault does not accept"},

		"AppRole":            {role(v1alpha1.AppRoleAuth{RoleID: roleID, SecretRef: ref("secret")}), ""},
		"AppRoleRef":         {role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: ref("secret"), Path: "approle"}), ""},
		"AppRoleNoSecret":    {role(v1alpha1.AppRoleAuth{RoleRef: p("role"), SecretRef: ref("none")}), "Invalid: spec.auth.appRole.secretRef: Secret"},
		"AppRoleNoRole":      {role(v1alpha1.AppRoleAuth{RoleRef: p("none"), SecretRef: ref("secret")}), "Invalid: spec.auth.appRole.roleRef: Secret"},
		"AppRoleWrongRole":   {role(v1alpha1.AppRoleAuth{RoleID: "other", SecretRef: ref("secret")}), "Denied: spec.auth.appRole.secretRef: Vault does not accept"},
		"AppRoleWrongSecret": {role(v1alpha1.AppRoleAuth{RoleID: roleID, SecretRef: ref("garbage")}), "Denied: spec.auth.appRole.secretRef: Vault does not accept"},
		"AppRoleWrongPath":   {role(v1alpha1.AppRoleAuth{RoleID: roleID, SecretRef: ref("secret"), Path: "nowhere"}), "Denied: spec.auth.appRole.secretRef: Vault does not accept"},
		"AppRolePathUp":      {role(v1alpha1.AppRoleAuth{RoleID: roleID, SecretRef: ref("secret"), Path: "../sys"}), "Invalid: spec.auth.appRole.path: "},
		"AppRoleBoth":        {role(v1alpha1.AppRoleAuth{RoleID: roleID, RoleRef: p("role"), SecretRef: ref("secret")}), "Invalid: spec.auth.appRole: set either"},

		"UserPass":          {user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: ref("password")}), ""},
		"UserPassWrong":     {user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: ref("garbage")}), "Denied: spec.auth.userPass.secretRef: Vault does not accept"},
		"UserPassNoSuch":    {user(v1alpha1.PasswordAuth{Username: "eve", SecretRef: ref("password")}), "Denied: spec.auth.userPass.secretRef: Vault does not accept"},
		"UserPassNoSecret":  {user(v1alpha1.PasswordAuth{Username: "bob", SecretRef: ref("none")}), "Invalid: spec.auth.userPass.secretRef: Secret"},
		"UserPassUp":        {user(v1alpha1.PasswordAuth{Username: "../../x", SecretRef: ref("password")}), "Invalid: spec.auth.userPass.username: "},
		"UserPassInAFolder": {user(v1alpha1.PasswordAuth{Username: "a/b", SecretRef: ref("password")}), "Invalid: spec.auth.userPass.username: "},

		"JWT":             {jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("jwt")}), ""},
		"JWTAccount":      {jwt(v1alpha1.JWTAuth{Role: "shop", ServiceAccountRef: account("reader")}), ""},
		"JWTNoAccount":    {jwt(v1alpha1.JWTAuth{Role: "shop", ServiceAccountRef: account("missing")}), "Invalid: spec.auth.jwt.serviceAccountRef: ServiceAccount"},
		"JWTAudience":     {jwt(v1alpha1.JWTAuth{Role: "shop", ServiceAccountRef: account("reader", "other")}), "Denied: spec.auth.jwt.serviceAccountRef: Vault does not accept"},
		"JWTOwn":          {jwt(v1alpha1.JWTAuth{Role: "shop", OperatorServiceAccount: own("vault")}), ""},
		"JWTOwnRefused":   {jwt(v1alpha1.JWTAuth{Role: "shop", OperatorServiceAccount: own("api")}), "Invalid: spec.auth.jwt.operatorServiceAccount: the API server accepts"},
		"JWTTwo":          {jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("jwt"), OperatorServiceAccount: own("vault")}), "Invalid: spec.auth.jwt: set exactly one of"},
		"JWTWrongRole":    {jwt(v1alpha1.JWTAuth{Role: "other", SecretRef: p("jwt")}), "Denied: spec.auth.jwt.role: the role does not exist at Vault"},
		"JWTNoRole":       {jwt(v1alpha1.JWTAuth{SecretRef: p("jwt")}), "Denied: spec.auth.jwt.role: required"},
		"JWTExpired":      {jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("expired-jwt")}), "Denied: spec.auth.jwt.secretRef: Vault does not accept"},
		"JWTForeign":      {jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("foreign-jwt")}), "Denied: spec.auth.jwt.secretRef: Vault does not accept"},
		"JWTGarbage":      {jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("garbage")}), "Denied: spec.auth.jwt.secretRef: Vault does not accept"},
		"JWTBrowser":      {jwt(v1alpha1.JWTAuth{Role: "browser", SecretRef: p("jwt")}), "Denied: spec.auth.jwt.role: the role is for logins with a browser"},
		"JWTIssuerGone":   {jwt(v1alpha1.JWTAuth{Path: "gone", Role: "shop", SecretRef: p("jwt")}), "Unavailable: spec.auth.jwt: Vault cannot fetch the keys"},
		"JWTNoSecret":     {jwt(v1alpha1.JWTAuth{Role: "shop", SecretRef: p("none")}), "Invalid: spec.auth.jwt.secretRef: Secret"},
		"Kubernetes":      {kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: account("reader")}), ""},
		"KubernetesToken": {kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("api-jwt")}), ""},
		"KubernetesRole":  {kube(v1alpha1.KubernetesAuth{Role: "other", ServiceAccountRef: account("reader")}), "Denied: spec.auth.kubernetes.role: the role does not exist at Vault"},
		"KubernetesRaw":   {kube(v1alpha1.KubernetesAuth{Path: "raw", Role: "shop", SecretRef: p("api-jwt")}), "Denied: spec.auth.kubernetes: the auth method is not configured"},
		"KubernetesNone":  {kube(v1alpha1.KubernetesAuth{Role: "shop", ServiceAccountRef: account("missing")}), "Invalid: spec.auth.kubernetes.serviceAccountRef: ServiceAccount"},
		"KubernetesWrong": {kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("foreign-jwt")}), "Denied: spec.auth.kubernetes.secretRef: Vault does not accept"},
		"KubernetesEmpty": {kube(v1alpha1.KubernetesAuth{Role: "shop", SecretRef: p("garbage")}), "Denied: spec.auth.kubernetes.secretRef: Vault does not accept"},

		"CertOverHTTP": {auth{Cert: &v1alpha1.CertAuth{ClientCert: ref("garbage"), SecretRef: ref("garbage")}}, "Invalid: spec.auth.cert.clientCert and spec.auth.cert.secretRef: "},
		"Nothing":      {auth{}, "Invalid: spec.auth: set exactly one"},
		"Two":          {auth{TokenSecretRef: p("token"), UserPass: &v1alpha1.PasswordAuth{Username: "bob"}}, "Invalid: spec.auth: set exactly one"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := appRole(srv.URL, withAuth(tc.auth))
			client, err := Connect(t.Context(), s, secrets)
			if err == nil {
				defer func() { _ = provider.Close(client) }()
				err = client.(*Client).Check(t.Context())
			}
			if tc.want == "" {
				if err != nil {
					t.Fatalf("Check: %v", err)
				}
				if got := read1(t, client.(*Client)); got != db {
					t.Errorf("got %s, want %s", got, db)
				}
				return
			}
			got := string(provider.ClassOf(err)) + ": " + provider.Safe(err).Error()
			if !strings.HasPrefix(got, tc.want) || strings.Contains(got, "c4n4ry") {
				t.Errorf("got %q, want %q…", got, tc.want)
			}
		})
	}
}

func TestNoAuth(t *testing.T) {
	s := appRole("http://127.0.0.1:1", func(s *v1alpha1.VaultKVSpec) { s.Auth = nil })
	for name, c := range map[string]provider.Credentials{"Ambient": creds{}, "NotAmbient": notAmbient{}} {
		t.Run(name, func(t *testing.T) {
			_, err := Connect(t.Context(), s, c)
			if provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), "spec.auth: ") {
				t.Errorf("error %v, want Invalid that names spec.auth", err)
			}
		})
	}
}

type notAmbient struct{ creds }

func (notAmbient) Ambient() error { return provider.NewError(provider.Invalid, "auth is not set") }
