package session

import (
	"cmp"
	"context"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

func byToken(ref common.SecretKeySelector, creds provider.Credentials) *method {
	const field = "spec.auth.tokenSecretRef"
	return &method{
		field: field, credential: field,
		wrong: "Vault does not accept the token; it is expired, revoked or of another namespace, or its policies do not allow lookup-self (policy default); store a new one",
		token: func(ctx context.Context) (string, error) { return textAt(ctx, creds, field, ref) },
	}
}

// loginPath returns the path of the logins of a method at a mount.
func loginPath(field, mount, fallback string) (string, error) {
	mount, err := CheckMount(field, cmp.Or(mount, fallback))
	return "auth/" + mount + "/login", err
}

func byAppRole(a *v1alpha1.AppRoleAuth, creds provider.Credentials) (*method, error) {
	const field = "spec.auth.appRole"
	if (a.RoleID != "") == (a.RoleRef != nil) {
		return nil, provider.NewError(provider.Invalid, "%s: set either roleId or roleRef", field)
	}
	path, err := loginPath(field+".path", a.Path, "approle")
	return &method{
		field: field, credential: field + ".secretRef", path: path,
		wrong: "Vault does not accept the secret id with this role id; check both, and path",
		body: func(ctx context.Context) (map[string]any, error) {
			role := a.RoleID
			if a.RoleRef != nil {
				var err error
				if role, err = textAt(ctx, creds, field+".roleRef", *a.RoleRef); err != nil {
					return nil, err
				}
			}
			secret, err := textAt(ctx, creds, field+".secretRef", a.SecretRef)
			return map[string]any{"role_id": role, "secret_id": secret}, err
		},
	}, err
}

func byKubernetes(a *v1alpha1.KubernetesAuth, creds provider.Credentials) (*method, error) {
	const field = "spec.auth.kubernetes"
	token := tokenSource{creds: creds, secret: a.SecretRef, account: a.ServiceAccountRef, own: a.OperatorServiceAccount}
	if err := token.in(field); err != nil {
		return nil, err
	}
	path, err := loginPath(field+".mountPath", a.Path, "kubernetes")
	return &method{
		field: field, credential: token.field, path: path,
		wrong: "Vault does not accept the token for this role; check the role's names, namespaces and audience, and mountPath",
		hints: []hint{
			{"role name", provider.Denied, field + ".role", "the role does not exist at Vault"},
			{"could not load", provider.Denied, field, "the auth method is not configured at Vault"},
		},
		body: func(ctx context.Context) (map[string]any, error) {
			jwt, err := token.get(ctx)
			return map[string]any{"role": a.Role, "jwt": jwt}, err
		},
	}, err
}

func byJWT(a *v1alpha1.JWTAuth, creds provider.Credentials) (*method, error) {
	const field = "spec.auth.jwt"
	token := tokenSource{creds: creds, secret: a.SecretRef, account: a.ServiceAccountRef, audience: "vault", own: a.OperatorServiceAccount}
	if err := token.in(field); err != nil {
		return nil, err
	}
	path, err := loginPath(field+".path", a.Path, "jwt")
	return &method{
		field: field, credential: token.field, path: path,
		wrong: "Vault does not accept the token; it is expired, or its issuer, audience or claims do not match the role",
		hints: []hint{
			{"could not be found", provider.Denied, field + ".role", "the role does not exist at Vault"},
			{"oidc role_type", provider.Denied, field + ".role", "the role is for logins with a browser; use a role of type jwt"},
			{"missing role", provider.Denied, field + ".role", "required: the auth method has no default role; set it"},
			{"fetching keys", provider.Unavailable, field, "Vault cannot fetch the keys of the token's issuer"},
			{"could not load", provider.Denied, field, "the auth method is not configured at Vault"},
		},
		body: func(ctx context.Context) (map[string]any, error) {
			jwt, err := token.get(ctx)
			body := map[string]any{"jwt": jwt}
			if a.Role != "" {
				body["role"] = a.Role
			}
			return body, err
		},
	}, err
}

func byPassword(field, fallback string, a *v1alpha1.PasswordAuth, creds provider.Credentials) (*method, error) {
	name, err := checkName(field+".username", a.Username)
	if err != nil {
		return nil, err
	}
	path, err := loginPath(field+".path", a.Path, fallback)
	return &method{
		field: field, credential: field + ".secretRef", path: path + "/" + name,
		wrong: "Vault does not accept the password for this username; check both, and path",
		hints: []hint{{"error connecting to host", provider.Unavailable, field, "Vault cannot reach the LDAP server"}},
		body: func(ctx context.Context) (map[string]any, error) {
			// A password can end in white space, unlike a token.
			password, err := secretAt(ctx, creds, field+".secretRef", a.SecretRef)
			return map[string]any{"password": string(password)}, err
		},
	}, err
}

// byCert sends no credential, because the TLS connection has already presented the certificate.
func byCert(a *v1alpha1.CertAuth) (*method, error) {
	const field = "spec.auth.cert"
	path, err := loginPath(field+".path", a.Path, "cert")
	return &method{
		field: field, credential: field + ".clientCert", path: path,
		wrong: "Vault does not accept the certificate; check its authority, its dates, vaultRole and path",
		hints: []hint{{"tls connection required", provider.Denied, "spec.server", "a client certificate needs https"}},
		body: func(context.Context) (map[string]any, error) {
			if a.Role == "" {
				return map[string]any{}, nil
			}
			return map[string]any{"name": a.Role}, nil
		},
	}, err
}

// A tokenSource returns a JSON web token: that of a Secret, or a new one of a ServiceAccount or of the operator's own.
type tokenSource struct {
	creds    provider.Credentials
	field    string
	secret   *common.SecretKeySelector
	account  *common.ServiceAccountSelector
	audience string // the default if the ServiceAccount's selector has none
	own      *common.OperatorServiceAccount
}

// in sets the field of the source, which is one of the fields of method.
func (t *tokenSource) in(method string) error {
	one, err := provider.ExactlyOne(method, provider.Choice{Field: "secretRef", Set: t.secret != nil},
		provider.Choice{Field: "serviceAccountRef", Set: t.account != nil}, provider.Choice{Field: "operatorServiceAccount", Set: t.own != nil})
	t.field = method + "." + one
	return err
}

// RBAC that only the auth methods with a ServiceAccount need.
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create,roleName=tokens

func (t tokenSource) get(ctx context.Context) (string, error) {
	if t.secret != nil {
		return textAt(ctx, t.creds, t.field, *t.secret)
	}
	if t.own != nil {
		token, err := provider.OwnToken(ctx, t.creds, t.own.Audience)
		return token, provider.Field(t.field, err)
	}
	audiences := t.account.Audiences
	if len(audiences) == 0 && t.audience != "" {
		audiences = []string{t.audience}
	}
	token, err := t.creds.ServiceAccountToken(ctx, *t.account, audiences...)
	if err != nil {
		return "", provider.Field(t.field, err)
	}
	return token, nil
}
