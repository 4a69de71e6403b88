package session

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-vault/apis/v1alpha1"
)

const (
	gcpField    = "spec.auth.gcp"
	gcpKeyField = gcpField + ".secretRef.secretAccessKeySecretRef"
	// gcpTokenTime is how long a signed token is valid. The token is used once, and Vault accepts it for one minute longer.
	gcpTokenTime = 2 * time.Minute
	// minKeyBits is the minimum size of an RSA key.
	minKeyBits = 2048
)

// byGCP logs in with a token that the key of a service account signs; see
// https://developer.hashicorp.com/vault/docs/auth/gcp#iam-login.
func byGCP(a *v1alpha1.GCPAuth, creds provider.Credentials) (*method, error) {
	path, err := loginPath(gcpField+".path", a.Path, "gcp")
	return &method{
		field: gcpField, credential: gcpKeyField, path: path,
		wrong: "Vault does not accept the service account; check that role is bound to it and to its project, and path",
		hints: []hint{
			{"googleapi: got HTTP response code 5", provider.Unavailable, gcpField, googleAway},
			{"googleapi: Error 5", provider.Unavailable, gcpField, googleAway},
			{": dial tcp", provider.Unavailable, gcpField, googleAway},
			{"no Google OAuth2 provider key", provider.Denied, gcpField + ".role", "the role is for machines; use a role of type iam"},
			{"unable to get public key", provider.Denied, gcpKeyField, "Google does not know the key or its service account; store a key that exists"},
			{"could not find service account", provider.Denied, gcpField, "Vault cannot read the service account at Google; check that it exists, and that Vault is allowed to read it"},
			{"JWTs expire within", provider.Denied, gcpField + ".role", "its max_jwt_exp is less than two minutes; set a longer one at Vault"},
			{"role \"", provider.Denied, gcpField + ".role", "the role does not exist at Vault"},
		},
		body: func(ctx context.Context) (map[string]any, error) {
			raw, err := textAt(ctx, creds, gcpKeyField, a.SecretRef.SecretAccessKeySecretRef)
			if err != nil {
				return nil, err
			}
			key, err := parseServiceKey(raw)
			if err != nil {
				return nil, err
			}
			jwt, err := key.sign(a.Role, time.Now())
			return map[string]any{"role": a.Role, "jwt": jwt}, err
		},
	}, err
}

const googleAway = "Vault cannot reach Google"

// A serviceKey is the key of a service account of Google Cloud.
type serviceKey struct {
	email, id string
	private   *rsa.PrivateKey
}

// parseServiceKey reads a key file.
func parseServiceKey(raw string) (*serviceKey, error) {
	bad := func(why string) (*serviceKey, error) {
		return nil, provider.NewError(provider.Invalid, "%s: %s", gcpKeyField, why)
	}
	var f struct {
		Type         string `json:"type"`
		ClientEmail  string `json:"client_email"`
		PrivateKeyID string `json:"private_key_id"`
		PrivateKey   string `json:"private_key"`
	}
	if err := json.Unmarshal([]byte(raw), &f); err != nil {
		return bad("is not the JSON key file of a service account; store the complete file from Google")
	}
	switch {
	case f.Type != "service_account":
		return bad("its type is not service_account; store the key of a service account")
	case f.ClientEmail == "" || f.PrivateKeyID == "":
		return bad("it has no client_email or no private_key_id; store the complete file from Google")
	}
	block, _ := pem.Decode([]byte(f.PrivateKey))
	if block == nil {
		return bad("its private_key is not PEM; store the complete file from Google")
	}
	if len(block.Bytes) > provider.MaxPrivateKey {
		return bad("its private_key is too large; store the complete file from Google")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, isRSA := parsed.(*rsa.PrivateKey)
	switch {
	case err != nil || !isRSA:
		return bad("its private_key is not an RSA key in the format PKCS #8; store the complete file from Google")
	case private.N.BitLen() < minKeyBits:
		return bad("its private_key has less than 2048 bits; create a new key at Google")
	}
	return &serviceKey{email: f.ClientEmail, id: f.PrivateKeyID, private: private}, nil
}

// sign returns a JSON web token for a role of Vault.
func (k *serviceKey) sign(role string, now time.Time) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": k.id})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{"aud": "vault/" + role, "sub": k.email, "exp": now.Add(gcpTokenTime).Unix()})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode(header) + "." + encode(claims)
	hash := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.private, crypto.SHA256, hash[:])
	if err != nil {
		return "", provider.NewError(provider.Invalid, "%s: its private_key cannot sign; store a new key", gcpKeyField)
	}
	return signed + "." + encode(signature), nil
}
