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
	// scope is that of all that an identity may do.
	scope    = "https://www.googleapis.com/auth/cloud-platform"
	keyField = "spec.auth.secretRef.secretAccessKeySecretRef"
	grantJWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	// assertionLife is below the longest that Google takes, an hour.
	assertionLife = 50 * time.Minute
	// clockSkew is how far the operator's clock may be ahead.
	clockSkew  = 10 * time.Second
	minKeyBits = 2048
)

// A serviceKey is the key of a service account.
type serviceKey struct {
	email, id, tokenURL string
	private             *rsa.PrivateKey
}

// parseKey reads a key in the form in which Google hands it out. Whoever wrote it is not trusted: it
// must not say where to log in, for that is where a signature goes.
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
		return nil, bad("is not the JSON of a service account's key; store the whole file that Google hands out")
	}
	switch {
	case f.Type != "service_account":
		return nil, bad("its type is not service_account; store the key of a service account, or use workloadIdentity")
	case f.ClientEmail == "":
		return nil, bad("it has no client_email; store the whole file that Google hands out")
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
		return nil, bad("its private_key %s; store the whole file that Google hands out", err)
	}
	return k, nil
}

func parsePrivateKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("is not PEM")
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
		return nil, errors.Errorf("has fewer than %d bits", minKeyBits)
	}
	return private, nil
}

// assertion is a JSON web token (RFC 7523) that says who logs in, and what for.
func (k *serviceKey) assertion(now time.Time, scopes []string) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": k.id})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": k.email, "scope": strings.Join(scopes, " "), "aud": k.tokenURL,
		"iat": now.Add(-clockSkew).Unix(), "exp": now.Add(assertionLife).Unix(),
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
	"invalid_grant":       {provider.Denied, keyField, "Google does not accept the key: it was deleted or disabled, its service account was, or the operator's clock is wrong"},
	"invalid_client":      {provider.Denied, keyField, "Google does not know the service account of the key"},
	"unauthorized_client": {provider.Denied, keyField, "the service account may not log in with a key"},
	"access_denied":       {provider.Denied, keyField, "the service account may not log in with a key"},
	"invalid_scope":       badScope,
}

func (l keyLogin) login(ctx context.Context) (token, error) {
	assertion, err := l.key.assertion(time.Now(), l.scopes)
	if err != nil {
		return token{}, provider.NewError(provider.Invalid, keyField+": nothing can be signed with its private_key")
	}
	form := url.Values{"grant_type": {grantJWT}, "assertion": {assertion}}
	t, err := l.form(ctx, l.key.tokenURL, form)
	if err != nil {
		return token{}, keyRefusals.explain(keyField, err)
	}
	return t, nil
}
