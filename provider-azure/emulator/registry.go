package emulator

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	refreshLifetime = 3 * time.Hour
	accessLifetime  = 75 * time.Minute
)

// A registry issues tokens by https://github.com/Azure/acr/blob/main/docs/AAD-OAuth.md.
type registry struct {
	*identities
	key []byte // signs tokens
}

// registryClaims are those of a token of the registry.
type registryClaims struct {
	jwt.RegisteredClaims
	Grant string `json:"grant_type"`
	Scope string `json:"scope,omitempty"`
}

// A grant is an answer with a token.
type grant struct {
	Refresh string `json:"refresh_token,omitempty"`
	Access  string `json:"access_token,omitempty"`
}

func (g *grant) damage(f BodyFault) {
	switch f {
	case BodyNoValue:
		*g = grant{}
	case BodyHuge:
		*g = grant{strings.Repeat("x", 4<<20), strings.Repeat("x", 4<<20)}
	}
}

// A registryError is an error of the registry.
type registryError struct {
	status        int
	code, message string
}

var unauthorized = &registryError{http.StatusUnauthorized, "UNAUTHORIZED", "authentication required, visit https://aka.ms/acr/authorization for more information."}

// exchange answers with a refresh token.
func (g *registry) exchange(r *http.Request) (*grant, *registryError) {
	form, refused := formOf(r, "access_token")
	if refused != nil {
		return nil, refused
	}
	client, ok := g.LoginToken(form("access_token"))
	app, _ := g.app(client)
	if !ok || app.NoRegistry || form("tenant") != g.tenant {
		return nil, unauthorized
	}
	return &grant{Refresh: g.sign(client, "refresh_token", "", r.Host, refreshLifetime)}, nil
}

// access answers with an access token for a scope.
func (g *registry) access(r *http.Request) (*grant, *registryError) {
	form, refused := formOf(r, "refresh_token")
	if refused != nil {
		return nil, refused
	}
	claims, ok := g.verify(form("refresh_token"))
	scopes := strings.Fields(form("scope"))
	switch {
	case !ok || claims.Grant != "refresh_token":
		return nil, unauthorized
	case len(scopes) == 0 || slices.ContainsFunc(scopes, func(s string) bool { return strings.Count(s, ":") < 2 }):
		return nil, &registryError{http.StatusBadRequest, "BAD_REQUEST", "invalid scope"}
	}
	return &grant{Access: g.sign(claims.Subject, "access_token", form("scope"), r.Host, accessLifetime)}, nil
}

// formOf returns the form of a request with a grant type, for this registry.
func formOf(r *http.Request, grantType string) (get func(string) string, refused *registryError) {
	if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != grantType || r.PostForm.Get("service") != r.Host {
		return nil, &registryError{http.StatusBadRequest, "BAD_REQUEST", "invalid grant_type or service"}
	}
	return r.PostForm.Get, nil
}

func (g *registry) sign(client, grantType, scope, host string, lifetime time.Duration) string {
	now := g.now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, registryClaims{
		RegisteredClaims: jwt.RegisteredClaims{
			ID: rand.Text(), Subject: client, Audience: jwt.ClaimStrings{host}, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)),
		},
		Grant: grantType, Scope: scope,
	}).SignedString(g.key)
	if err != nil {
		panic(err) // The key is of the right type.
	}
	return token
}

func (g *registry) verify(token string) (registryClaims, bool) {
	var claims registryClaims
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return g.key, nil }, jwt.WithValidMethods([]string{"HS256"}), jwt.WithTimeFunc(g.now))
	return claims, err == nil
}

// RegistryToken returns the client of a token of the registry, and its scope, which is empty for a refresh token. ok is false if the
// token is not valid.
func (g *registry) RegistryToken(token string) (client, scope string, ok bool) {
	claims, ok := g.verify(token)
	return claims.Subject, claims.Scope, ok
}

// LoginToken returns the client of a token for Azure Container Registry. ok is false if the token is not valid, or for another resource.
func (g *registry) LoginToken(token string) (client string, ok bool) {
	return g.lookupToken(token, g.resources[len(g.resources)-1], g.now())
}
