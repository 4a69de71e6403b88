package gcpconfig

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

const (
	// scope is the scope with all permissions of an identity.
	scope    = "https://www.googleapis.com/auth/cloud-platform"
	keyField = "spec.auth.secretRef.secretAccessKeySecretRef"
	grantJWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	// assertionLifetime is how long an assertion is valid. Google's maximum is one hour.
	assertionLifetime = 50 * time.Minute
	// clockSkew is the maximum time by which the operator's clock can be ahead of Google's.
	clockSkew  = 10 * time.Second
	minKeyBits = 2048
)

// A serviceKey is the key of a service account.
type serviceKey struct {
	email, id, tokenURL string
	private             *rsa.PrivateKey
}

// parseKey decodes a key in Google's format. The key is untrusted input: its token URI must not choose where
// the signed assertion is sent.
func parseKey(raw []byte, at logins) (*serviceKey, error) {
	bad := func(format string, args ...any) error {
		return provider.NewError(provider.Invalid, keyField+": "+format, args...)
	}
	var f struct {
		Type           string `json:"type"`
		ClientEmail    string `json:"client_email"`
		PrivateKeyID   string `json:"private_key_id"`
		PrivateKey     string `json:"private_key"`
		TokenURI       string `json:"token_uri"`
		UniverseDomain string `json:"universe_domain"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(raw), &f); err != nil {
		return nil, bad("is not the JSON key file of a service account; store the complete file from Google")
	}
	switch {
	case f.Type != "service_account":
		return nil, bad("its type is not service_account; store the key of a service account, or use workloadIdentity")
	case f.ClientEmail == "":
		return nil, bad("it has no client_email; store the complete file from Google")
	case f.UniverseDomain != "" && f.UniverseDomain != "googleapis.com":
		return nil, bad("its universe_domain is not googleapis.com")
	}
	k := &serviceKey{email: f.ClientEmail, id: f.PrivateKeyID, tokenURL: at.token}
	switch f.TokenURI {
	case "", at.token:
	case google.token:
		k.tokenURL = google.token
	default:
		return nil, bad("its token_uri is not %s", google.token)
	}
	var err error
	if k.private, err = parsePrivateKey(f.PrivateKey); err != nil {
		return nil, bad("its private_key %s; store the complete file from Google", err)
	}
	return k, nil
}

func parsePrivateKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	switch {
	case block == nil:
		return nil, errors.New("is not PEM")
	case len(block.Bytes) > provider.MaxPrivateKey:
		return nil, errors.Errorf("has more than %d bytes", provider.MaxPrivateKey)
	}
	var private *rsa.PrivateKey
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		private, _ = parsed.(*rsa.PrivateKey)
	} else if private, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		private = nil
	}
	switch {
	case private == nil:
		return nil, errors.New("is not an RSA key")
	case private.N.BitLen() < minKeyBits:
		return nil, errors.Errorf("has less than %d bits", minKeyBits)
	}
	return private, nil
}

// assertion returns a JSON web token (RFC 7523) with the service account and the scopes.
func (k *serviceKey) assertion(now time.Time, scopes []string) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": k.id})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": k.email, "scope": strings.Join(scopes, " "), "aud": k.tokenURL,
		"iat": now.Add(-clockSkew).Unix(), "exp": now.Add(assertionLifetime).Unix(),
	})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode(header) + "." + encode(claims)
	hash := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.private, crypto.SHA256, hash[:])
	return signed + "." + encode(signature), err
}

// keyLogin logs in with the key of a service account.
type keyLogin struct {
	poster
	key    *serviceKey
	scopes []string
}

var keyRefusals = refusals{
	"invalid_grant":       {provider.Denied, keyField, "Google does not accept the key: the key or its service account is deleted or disabled, or the clock of the operator is wrong"},
	"invalid_client":      {provider.Denied, keyField, "Google does not know the service account of the key"},
	"unauthorized_client": {provider.Denied, keyField, "the service account is not allowed to log in with a key"},
	"access_denied":       {provider.Denied, keyField, "the service account is not allowed to log in with a key"},
	"invalid_scope":       badScope,
}

func (l keyLogin) login(ctx context.Context) (provider.Token, error) {
	assertion, err := l.key.assertion(time.Now(), l.scopes)
	if err != nil {
		return provider.Token{}, provider.NewError(provider.Invalid, keyField+": its private_key cannot sign")
	}
	form := url.Values{"grant_type": {grantJWT}, "assertion": {assertion}}
	t, err := l.form(ctx, l.key.tokenURL, form)
	if err != nil {
		return provider.Token{}, keyRefusals.explain(keyField, err)
	}
	return t, nil
}
