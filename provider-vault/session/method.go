package session

import (
	"context"
	"net/http"
	"strings"
	"time"
	"unicode"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

// A method is a way to log in.
type method struct {
	// field is the method's field in the spec, and credential the field of the credential within it.
	field, credential string
	// path is the path for the login, below v1/.
	path string
	// body returns the body of the login. It reads the referenced Secrets again each time.
	body func(ctx context.Context) (map[string]any, error)
	// token, instead of path and body, reads an existing token.
	token func(ctx context.Context) (string, error)
	// wrong is the message for a rejected credential.
	wrong string
	// hints are the messages for errors that Vault's text identifies.
	hints []hint
}

// A hint is the meaning of a text of Vault, whatever the status. The status differs between Vault, OpenBao and
// versions of both.
type hint struct {
	phrase      string
	class       provider.Class
	field, text string
}

// secretAt reads a Secret. Its error names the field.
func secretAt(ctx context.Context, creds provider.Credentials, field string, sel common.SecretKeySelector) ([]byte, error) {
	v, err := creds.SecretValue(ctx, sel)
	if err != nil {
		return nil, provider.Field(field, err)
	}
	return v, nil
}

// textAt reads a Secret without leading and trailing white space, such as the line end of a file.
func textAt(ctx context.Context, creds provider.Credentials, field string, sel common.SecretKeySelector) (string, error) {
	v, err := secretAt(ctx, creds, field, sel)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(v))
	if text == "" {
		return "", provider.NewError(provider.Invalid, "%s: the value is blank", field)
	}
	return text, nil
}

// methodOf returns the auth method of a store.
func methodOf(auth *v1alpha1.VaultAuth, creds provider.Credentials) (*method, error) {
	if auth == nil {
		if err := creds.Ambient(); err != nil {
			return nil, provider.Field("spec.auth", err)
		}
		return nil, provider.NewError(provider.Invalid, "spec.auth: not set; set one method, because Vault does not accept the operator's own identity")
	}
	_, err := provider.ExactlyOne("spec.auth", provider.Choice{Field: "tokenSecretRef", Set: auth.TokenSecretRef != nil}, provider.Choice{Field: "appRole", Set: auth.AppRole != nil},
		provider.Choice{Field: "kubernetes", Set: auth.Kubernetes != nil}, provider.Choice{Field: "jwt", Set: auth.JWT != nil}, provider.Choice{Field: "userPass", Set: auth.UserPass != nil},
		provider.Choice{Field: "ldap", Set: auth.LDAP != nil}, provider.Choice{Field: "cert", Set: auth.Cert != nil}, provider.Choice{Field: "iam", Set: auth.IAM != nil}, provider.Choice{Field: "gcp", Set: auth.GCP != nil})
	switch {
	case err != nil:
		return nil, err
	case auth.AppRole != nil:
		return byAppRole(auth.AppRole, creds)
	case auth.Kubernetes != nil:
		return byKubernetes(auth.Kubernetes, creds)
	case auth.JWT != nil:
		return byJWT(auth.JWT, creds)
	case auth.UserPass != nil:
		return byPassword("spec.auth.userPass", "userpass", auth.UserPass, creds)
	case auth.LDAP != nil:
		return byPassword("spec.auth.ldap", "ldap", auth.LDAP, creds)
	case auth.Cert != nil:
		return byCert(auth.Cert)
	case auth.IAM != nil:
		return byIAM(auth.IAM, creds)
	case auth.GCP != nil:
		return byGCP(auth.GCP, creds)
	}
	return byToken(*auth.TokenSecretRef, creds), nil
}

// login returns a new session. Errors are of package provider, and name the field to fix.
func (m *method) login(ctx context.Context, srv *server) (*Session, error) {
	if m.token != nil {
		return m.adopt(ctx, srv)
	}
	body, err := m.body(ctx)
	if err != nil {
		return nil, err
	}
	c, err := srv.client(srv.config, srv.authNamespace, "")
	if err != nil {
		return nil, err
	}
	a, err := Write(ctx, c, m.path, body)
	if err != nil {
		return nil, m.explain(err)
	}
	if a.Auth == nil || !printable(a.Auth.Token) {
		return nil, provider.NewError(provider.Unavailable, "%s: the response of Vault has no token; multi-factor logins are not supported", m.field)
	}
	s, err := srv.newSession(a.Auth.Token, a.Auth.of())
	if err != nil {
		return nil, err
	}
	s.own = true
	return s, nil
}

// adopt returns a session with an existing token.
func (m *method) adopt(ctx context.Context, srv *server) (*Session, error) {
	text, err := m.token(ctx)
	if err != nil {
		return nil, err
	}
	if !printable(text) {
		return nil, provider.NewError(provider.Invalid, "%s: the value is not a token", m.credential)
	}
	s, err := srv.newSession(text, token{})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	t, err := s.lookup(ctx)
	if err != nil {
		return nil, m.explain(err)
	}
	s.learn(t, start)
	return s, nil
}

// printable reports whether a token can be sent in a header.
func printable(token string) bool {
	return token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f })
}

// explain turns the error of a login into one that names the field to fix.
func (m *method) explain(err error) error {
	r, ok := err.(*Refusal) //nolint:errorlint // Read and Write return it as it is
	if !ok {
		return Explain(err, "logging in")
	}
	if r.Foreign || r.Contains(inconsistentHeader) {
		return Explain(err, "")
	}
	for _, h := range m.hints {
		if r.Contains(h.phrase) {
			return provider.NewError(h.class, "%s: %s", h.field, h.text)
		}
	}
	switch r.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnauthorized:
		return provider.NewError(provider.Denied, "%s: %s", m.credential, m.wrong)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return provider.NewError(provider.Invalid, "%s: the auth method does not exist at Vault; correct its path, or spec.namespace", m.field)
	}
	return Explain(err, m.field+": logging in")
}
