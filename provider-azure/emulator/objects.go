package emulator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/base64"
	"math/big"
	"net/http"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// These are the content types of the secret of a certificate.
const (
	TypePEM     = "application/x-pem-file"
	TypeArchive = "application/x-pkcs12"
)

// A Certificate is what the secret of a certificate contains.
type Certificate struct {
	// PEM has the certificates, and the private key if it is exportable.
	PEM string
	// Archive is the same in PKCS#12. If it is set, the policy of the certificate has that content type, and the server returns PEM
	// only on request.
	Archive []byte
}

// PutCertificate stores the current version of a certificate as a secret, and returns the ID of the version. It returns an error for
// a name that Key Vault does not have.
func (s *vault) PutCertificate(name string, c Certificate, opts ...PutOption) (id string, err error) {
	value, contentType := c.PEM, TypePEM
	if c.Archive != nil {
		value, contentType = base64.StdEncoding.EncodeToString(c.Archive), TypeArchive
	}
	certificate := func(of *secret, v *version) { of.managed, v.pem, v.contentType = true, c.PEM, contentType }
	return s.Put(name, []byte(value), append([]PutOption{certificate}, opts...)...)
}

// ContentType sets the content type of the version.
func ContentType(text string) PutOption { return func(_ *secret, v *version) { v.contentType = text } }

// A keyring has the keys of a vault.
type keyring struct{ vault *vault }

// PutKey stores the current version of a key with a public part, and returns the ID of the version. It returns an error for a name or
// a public key that Key Vault does not have. The private part does not exist.
func (k keyring) PutKey(name string, public crypto.PublicKey, opts ...PutOption) (id string, err error) {
	if !secretName.MatchString(name) {
		return "", errors.Errorf("%q is not the name of a key", name)
	}
	key, err := jwkOf(public)
	if err != nil {
		return "", err
	}
	s := k.vault
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.putLocked(s.keys, name, "", opts)
	v.key = key
	return v.id, nil
}

// jwkOf returns the members of RFC 7518, section 6, of a public key.
func jwkOf(public crypto.PublicKey) (map[string]any, error) {
	text := base64.RawURLEncoding.EncodeToString
	switch k := public.(type) {
	case *rsa.PublicKey:
		return map[string]any{"kty": "RSA", "n": text(k.N.Bytes()), "e": text(big.NewInt(int64(k.E)).Bytes()), "key_ops": []string{"sign", "verify"}}, nil
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			return nil, errors.Wrap(err, "the point of the key is not valid")
		}
		half := len(point) / 2
		return map[string]any{"kty": "EC-HSM", "crv": k.Params().Name, "x": text(point[1 : half+1]), "y": text(point[half+1:]), "key_ops": []string{"sign", "verify"}}, nil
	}
	return nil, errors.New("Key Vault has only RSA and EC keys")
}

// A keyBundle is a key with its public part.
type keyBundle struct {
	Key        map[string]any    `json:"key,omitempty"`
	Attributes attributes        `json:"attributes"`
	Tags       map[string]string `json:"tags,omitempty"`
}

// getKey answers also for a disabled key, like Key Vault.
func (k keyring) getKey(r *http.Request) (any, *failure) {
	s := k.vault
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.keys[strings.ToLower(r.PathValue("name"))]
	if of == nil {
		return nil, keyNotFound(r.PathValue("name"))
	}
	v, failed := of.requested(r, keyNotFound)
	if failed != nil {
		return nil, failed
	}
	key := map[string]any{"kid": "https://" + strings.TrimSuffix(r.Host, defaultPort) + "/keys/" + of.name + "/" + v.id}
	for name, member := range v.key {
		key[name] = member
	}
	b := s.bundle(r, of, v, true)
	return &keyBundle{Key: key, Attributes: b.Attributes, Tags: b.Tags}, nil
}

func keyNotFound(name string) *failure {
	return &failure{status: http.StatusNotFound, code: "KeyNotFound", message: "A key with (name/id) " + name + " was not found in this key vault."}
}

// damage applies a fault to the answer.
func (k *keyBundle) damage(f BodyFault) {
	switch f {
	case BodyNoValue:
		k.Key = nil
	case BodyOtherName:
		k.Key["kid"] = strings.Replace(k.Key["kid"].(string), "/keys/", "/keys/another-", 1)
	}
}
