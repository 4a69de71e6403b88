package emulator

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Provider is a workload identity provider. It determines which tokens of another issuer can be exchanged.
type Provider struct {
	// Audience is the name of the provider in the token exchange.
	Audience string
	// TokenAudiences are the audiences that a token can have. The default is Audience, with and without
	// "https:" before it.
	TokenAudiences []string
	// Subjects are the accepted subjects, with "*" for any text; empty accepts all.
	Subjects []string
}

type account struct {
	keys          map[string]bool // by id
	impersonators []string
}

type accessToken struct {
	caller  string
	expires time.Time
	scopes  []string
}

// identities are the service accounts and pools of the projects, and the issued tokens.
type identities struct {
	mu        sync.RWMutex
	accounts  map[string]*account
	providers map[string]Provider
	tokens    map[string]accessToken
}

// privateKey is the key of every service account, because generating one takes long.
var privateKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // happens only without a source of randomness
	}
	return k
})

// AddServiceAccount adds a service account. Impersonators are the emails or subjects that can get its tokens,
// with "*" for any text.
func (e *Emulator) AddServiceAccount(email string, impersonators ...string) {
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	if e.identities.accounts == nil {
		e.identities.accounts = map[string]*account{}
	}
	e.identities.accounts[email] = &account{keys: map[string]bool{}, impersonators: impersonators}
}

// AddProvider adds a workload identity provider.
func (e *Emulator) AddProvider(p Provider) {
	if p.TokenAudiences == nil {
		p.TokenAudiences = []string{p.Audience, "https:" + p.Audience}
	}
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	if e.identities.providers == nil {
		e.identities.providers = map[string]Provider{}
	}
	e.identities.providers[p.Audience] = p
}

// AddToken adds an access token. Without scopes it has all permissions of the caller.
func (e *Emulator) AddToken(token, caller string, expires time.Time, scopes ...string) {
	if len(scopes) == 0 {
		scopes = []string{scopeAll}
	}
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	if e.identities.tokens == nil {
		e.identities.tokens = map[string]accessToken{}
	}
	e.identities.tokens[token] = accessToken{caller, expires, scopes}
}

// TokenInfo returns the owner, the scopes and the expiry of an access token. ok is false if the token is
// unknown or has expired.
func (e *Emulator) TokenInfo(token string) (caller string, scopes []string, expires time.Time, ok bool) {
	t, ok := e.identities.lookupToken(token, e.now())
	return t.caller, slices.Clone(t.scopes), t.expires, ok
}

// RevokeTokens removes all access tokens, as if they had expired.
func (e *Emulator) RevokeTokens() {
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	clear(e.identities.tokens)
}

// RevokeKeys deletes the keys of a service account.
func (e *Emulator) RevokeKeys(email string) {
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	if a := e.identities.accounts[email]; a != nil {
		clear(a.keys)
	}
}

// Key returns a new key of a service account, in Google's format. It adds the service account if necessary.
func (s *Server) Key(email string) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(privateKey())
	if err != nil {
		panic(err) // privateKey can always be encoded
	}
	id := rand.Text()
	s.identities.mu.RLock()
	known := s.identities.accounts[email] != nil
	s.identities.mu.RUnlock()
	if !known {
		s.AddServiceAccount(email)
	}
	s.identities.mu.Lock()
	s.identities.accounts[email].keys[id] = true
	s.identities.mu.Unlock()
	b, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": DefaultProject, "client_email": email, "client_id": "1",
		"private_key_id": id, "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"token_uri": s.URL() + tokenPath, "universe_domain": "googleapis.com",
	})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return b
}

// lookupToken returns the access token with its owner and scopes. ok is false if it is unknown or has expired.
func (i *identities) lookupToken(token string, now time.Time) (of accessToken, ok bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	of, ok = i.tokens[token]
	return of, ok && now.Before(of.expires)
}

// forAll reports whether the token has all permissions of its owner.
func (t accessToken) forAll() bool { return slices.Contains(t.scopes, scopeAll) }

func (i *identities) hasKey(email, id string) (account, key bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	a := i.accounts[email]
	return a != nil, a != nil && a.keys[id]
}

func (i *identities) mayImpersonate(caller, email string) (known, allowed bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	a := i.accounts[email]
	return a != nil, a != nil && slices.ContainsFunc(a.impersonators, func(p string) bool { return matches(p, caller) })
}

func (i *identities) provider(audience string) (Provider, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	p, ok := i.providers[audience]
	return p, ok
}

// signed reports whether a token has a valid signature of privateKey.
func signed(token string) bool {
	i := strings.LastIndexByte(token, '.')
	signature, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil || i < 0 {
		return false
	}
	h := crypto.SHA256.New()
	h.Write([]byte(token[:i]))
	return rsa.VerifyPKCS1v15(&privateKey().PublicKey, crypto.SHA256, h.Sum(nil), signature) == nil
}
