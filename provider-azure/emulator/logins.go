package emulator

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/golang-jwt/jwt/v5"
)

const (
	tokenLifetime = time.Hour
	machinePath   = "/metadata/identity/oauth2/token"
	// FederatedAudience is the audience of federated tokens.
	FederatedAudience = "api://AzureADTokenExchange"
)

// An App is an application, or a managed identity, that can log in.
type App struct {
	// Secrets are its client secrets.
	Secrets []string
	// Certificates are its certificates.
	Certificates []*x509.Certificate
	// Subjects are the subjects of the ServiceAccount tokens that it trusts, with "*" for any text.
	Subjects []string
	// Machine reports whether IMDS returns its tokens.
	Machine bool
	// NoRegistry reports whether it has no role in the registry.
	NoRegistry bool
}

type accessToken struct {
	client   string
	resource string
	expires  time.Time
}

// identities are the applications and the issued tokens.
type identities struct {
	config

	mu     sync.Mutex
	apps   map[string]App
	tokens map[string]accessToken
}

// SetApp adds or replaces an application.
func (i *identities) SetApp(clientID string, app App) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.apps[clientID] = app
}

// RevokeTokens removes all access tokens, as if they had expired.
func (i *identities) RevokeTokens() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.tokens)
}

func (i *identities) app(clientID string) (App, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a, ok := i.apps[clientID]
	return a, ok
}

// machineApp returns the machine identity with a client ID, or the first one.
func (i *identities) machineApp(clientID string) (string, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, a := range i.apps {
		if a.Machine && (clientID == "" || clientID == id) {
			return id, true
		}
	}
	return "", false
}

func (i *identities) lookupToken(token, resource string, now time.Time) (clientID string, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	t, ok := i.tokens[token]
	return t.client, ok && t.resource == resource && now.Before(t.expires)
}

// issue returns a new token for a resource.
func (i *identities) issue(clientID, resource string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	token := rand.Text()
	i.tokens[token] = accessToken{clientID, resource, i.now().Add(tokenLifetime)}
	return token
}

// A refusal is the error of a login. number is the one after AADSTS.
type refusal struct {
	status int
	code   string
	number int
}

func (i *identities) checkTenant(r *http.Request) *refusal {
	if r.PathValue("tenant") != i.tenant {
		return &refusal{http.StatusBadRequest, "invalid_tenant", 90002}
	}
	return nil
}

func (i *identities) discovery(r *http.Request) (any, *refusal) {
	if refused := i.checkTenant(r); refused != nil {
		return nil, refused
	}
	base := "https://" + r.Host + "/" + i.tenant
	return map[string]any{"issuer": base + "/v2.0", "authorization_endpoint": base + "/oauth2/v2.0/authorize", "token_endpoint": base + "/oauth2/v2.0/token"}, nil
}

func (i *identities) token(r *http.Request) (any, *refusal) {
	if refused := i.checkTenant(r); refused != nil {
		return nil, refused
	}
	if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != "client_credentials" {
		return nil, &refusal{http.StatusBadRequest, "unsupported_grant_type", 70003}
	}
	clientID := r.PostForm.Get("client_id")
	app, ok := i.app(clientID)
	resource := i.resourceOf(r.PostForm.Get("scope"))
	switch {
	case !ok:
		return nil, &refusal{http.StatusBadRequest, "unauthorized_client", 700016}
	case resource == "":
		return nil, &refusal{http.StatusBadRequest, "invalid_resource", 500011}
	}
	assertion := r.PostForm.Get("client_assertion")
	switch {
	case assertion == "" && slices.Contains(app.Secrets, r.PostForm.Get("client_secret")):
	case assertion == "":
		return nil, &refusal{http.StatusUnauthorized, "invalid_client", 7000215}
	default:
		if refused := i.checkAssertion(assertion, clientID, app); refused != nil {
			return nil, refused
		}
	}
	seconds := int(tokenLifetime / time.Second)
	return map[string]any{"token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds, "access_token": i.issue(clientID, resource)}, nil
}

// resourceOf returns the resource of the first scope that tokens can have; empty if there is none.
func (i *identities) resourceOf(scopes string) string {
	for scope := range strings.FieldsSeq(scopes) {
		if resource, ok := strings.CutSuffix(scope, "/.default"); ok && slices.Contains(i.resources, resource) {
			return resource
		}
	}
	return ""
}

// checkAssertion accepts a token that is signed with a certificate of the application, or a ServiceAccount token that it trusts.
func (i *identities) checkAssertion(assertion, clientID string, app App) *refusal {
	claims := &jwt.RegisteredClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(assertion, claims)
	if err != nil {
		return &refusal{http.StatusBadRequest, "invalid_request", 50027}
	}
	if parsed.Header["x5t"] != nil || parsed.Header["x5t#S256"] != nil {
		for _, c := range app.Certificates {
			_, err := jwt.ParseWithClaims(assertion, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) {
				key, ok := c.PublicKey.(*rsa.PublicKey)
				if !ok {
					return nil, errors.New("no RSA key")
				}
				return key, nil
			}, jwt.WithValidMethods([]string{"RS256", "PS256"}), jwt.WithIssuer(clientID), jwt.WithTimeFunc(i.now))
			if err == nil {
				return nil
			}
		}
		return &refusal{http.StatusUnauthorized, "invalid_client", 700027}
	}
	switch {
	case !slices.Contains(claims.Audience, FederatedAudience):
		return &refusal{http.StatusUnauthorized, "invalid_client", 700212}
	case !slices.ContainsFunc(app.Subjects, func(p string) bool { ok, err := path.Match(p, claims.Subject); return ok && err == nil }):
		return &refusal{http.StatusUnauthorized, "invalid_client", 700213}
	case i.verifyToken != nil && i.verifyToken(assertion) != nil:
		return &refusal{http.StatusUnauthorized, "invalid_client", 7000272}
	}
	return nil
}

func (i *identities) machine(r *http.Request) (any, *refusal) {
	q := r.URL.Query()
	id, ok := i.machineApp(q.Get("client_id"))
	switch {
	case r.Header.Get("Metadata") != "true":
		return nil, &refusal{http.StatusBadRequest, "bad_request_102", 0}
	case !ok:
		return nil, &refusal{http.StatusBadRequest, "invalid_request", 0}
	case !slices.Contains(i.resources, q.Get("resource")):
		return nil, &refusal{http.StatusBadRequest, "invalid_resource", 500011}
	}
	return map[string]any{
		"token_type": "Bearer", "access_token": i.issue(id, q.Get("resource")), "resource": q.Get("resource"), "client_id": id,
		"expires_in": int(tokenLifetime / time.Second), "expires_on": i.now().Add(tokenLifetime).Unix(),
	}, nil
}
