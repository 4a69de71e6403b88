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

// A Provider is a workload identity provider: it says which tokens of another issuer are exchanged.
type Provider struct {
	// Audience is the name of the provider, as the exchange names it.
	Audience string
	// TokenAudiences are those that a token may have. Default: Audience, and "https:" before it.
	TokenAudiences []string
	// Subjects may come in, with "*" for any text; none admits all.
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

// identities are the service accounts and pools of the projects, and the tokens that were given out.
type identities struct {
	mu        sync.RWMutex
	accounts  map[string]*account
	providers map[string]Provider
	tokens    map[string]accessToken
}

// privateKey is that of every service account; making one takes long.
var privateKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // only without any source of randomness
	}
	return k
})

// AddServiceAccount makes a service account known. Impersonators are the emails or subjects that may
// get tokens of it, with "*" for any text.
func (e *Emulator) AddServiceAccount(email string, impersonators ...string) {
	e.identities.mu.Lock()
	defer e.identities.mu.Unlock()
	if e.identities.accounts == nil {
		e.identities.accounts = map[string]*account{}
	}
	e.identities.accounts[email] = &account{keys: map[string]bool{}, impersonators: impersonators}
}

// AddProvider makes a workload identity provider known.
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

// AddToken makes an access token known. Without scopes it is for all that the caller may do.
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

// TokenInfo tells whose access token it is, for which scopes, and until when. ok is false if it is none, or
// has expired.
func (e *Emulator) TokenInfo(token string) (caller string, scopes []string, expires time.Time, ok bool) {
	t, ok := e.identities.who(token, e.now())
	return t.caller, slices.Clone(t.scopes), t.expires, ok
}

// RevokeTokens makes all access tokens unknown, as if they had expired.
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

// Key returns a new key of a service account, which it adds if need be, in the form in which Google
// hands keys out.
func (s *Server) Key(email string) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(privateKey())
	if err != nil {
		panic(err) // the key is a good one
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
		panic(err) // strings
	}
	return b
}

// who returns whose token it is, and what for.
func (i *identities) who(token string, now time.Time) (of accessToken, ok bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	of, ok = i.tokens[token]
	return of, ok && now.Before(of.expires)
}

// forAll reports whether the token is for all that the caller may do.
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

// claims are the parts of a JSON web token that the logins look at.
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience audience `json:"aud"`
	Scope    string   `json:"scope"`
	Issued   float64  `json:"iat"`
	Expires  float64  `json:"exp"`
}

// audience is one string or a list of them.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(a))
}

// parseToken takes a JSON web token apart; it does not verify it.
func parseToken(token string) (c claims, keyID string, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, "", false
	}
	var header struct {
		KeyID string `json:"kid"`
	}
	for i, to := range []any{&header, &c} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(b, to) != nil {
			return c, "", false
		}
	}
	return c, header.KeyID, true
}

// signed reports whether a token bears the signature of privateKey.
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

// NewToken returns an unsigned JSON web token, for tests without an issuer of their own.
func NewToken(issuer, subject, audience string, expires time.Time) string {
	payload, err := json.Marshal(map[string]any{"iss": issuer, "sub": subject, "aud": []string{audience}, "exp": expires.Unix()})
	if err != nil {
		panic(err) // strings and a number
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + enc.EncodeToString(payload) + "."
}
