package cryptofuncs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math"
	"math/big"
	"strings"
)

// jwkPublicKeyPem returns the public part of a JSON Web Key (RFC 7517) as a PUBLIC KEY block. Unlike in External
// Secrets Operator, the JWK can be a private key.
func jwkPublicKeyPem(jwk string) (string, error) {
	key, err := parseJWK(jwk)
	if err != nil {
		return "", err
	}
	if private, ok := key.(interface{ Public() crypto.PublicKey }); ok {
		key = private.Public()
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", errJWK()
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: publicKeyType, Bytes: der})), nil
}

// jwkPrivateKeyPem returns a private JSON Web Key (RFC 7517) as a PRIVATE KEY block in PKCS#8.
func jwkPrivateKeyPem(jwk string) (string, error) {
	key, err := parseJWK(jwk)
	if err != nil {
		return "", err
	}
	if _, ok := key.(interface{ Public() crypto.PublicKey }); !ok {
		return "", newError("the JWK holds only a public key; use jwkPublicKeyPem, or store the key with its private members")
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", errJWK()
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: privateKeyType, Bytes: der})), nil
}

func errJWK() error {
	return newError("the JWK is not a valid key: it must be RSA with two primes, EC on P-256, P-384 or P-521, or OKP on Ed25519, with all members of its kind in base64url")
}

// jwkMembers are the members of a key. RFC 7518, sections 6.2 and 6.3, and RFC 8037, section 2, define those that are
// read. Certificates, names and uses are ignored.
type jwkMembers map[string]json.RawMessage

// parseJWK returns the public or private key of a JSON Web Key. It does not use a JOSE library: those limit RSA keys
// by a global variable, and parse more than the key.
func parseJWK(jwk string) (any, error) {
	if err := checkSize(jwk); err != nil {
		return nil, err
	}
	var m jwkMembers
	if err := json.Unmarshal([]byte(jwk), &m); err != nil {
		return nil, newError("the value is not a JWK, which is a JSON object; if it is base64, decode it first")
	}
	if _, ok := m["keys"]; ok {
		return nil, newError("the value is a set of JWKs; pick one, for example with the property keys.0")
	}
	switch kind := m.text("kty"); {
	case kind == "RSA":
		return m.rsa()
	case kind == "EC":
		return m.ec()
	case kind == "OKP" && m.text("crv") == "Ed25519":
		return m.ed25519()
	case kind == "oct":
		return nil, newError("the JWK is a symmetric key, which has no PEM form; use its member k")
	}
	return nil, errJWK()
}

// text returns a member that is a string; empty for any other.
func (m jwkMembers) text(name string) string {
	var s string
	if json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

// bytes returns a member that is base64url. RFC 7515, section 2, has no padding, but some tools add it. The result is
// nil for a member that is not base64url, or larger than any key of its kind.
func (m jwkMembers) bytes(name string) []byte {
	s := strings.TrimRight(m.text(name), "=")
	if len(s) > base64.RawURLEncoding.EncodedLen(maxModulus/8+1) {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil
	}
	return b
}

func (m jwkMembers) int(name string) *big.Int { return new(big.Int).SetBytes(m.bytes(name)) }

// private reports whether the key has a private part.
func (m jwkMembers) private() bool { _, ok := m["d"]; return ok }

// rsa returns an RSA key. It ignores the members dp, dq and qi, which follow from the others.
func (m jwkMembers) rsa() (any, error) {
	if len(m.text("n")) > base64.URLEncoding.EncodedLen(maxModulus/8+1) {
		return nil, newError("the RSA key of the JWK has more than %d bits, which is not supported", maxModulus)
	}
	n, e := m.int("n"), m.int("e")
	if n.Bit(0) == 0 || !e.IsInt64() || e.Int64() < 2 || e.Int64() > math.MaxInt32 {
		return nil, errJWK()
	}
	public := rsa.PublicKey{N: n, E: int(e.Int64())}
	if !m.private() {
		return &public, nil
	}
	p, q := m.int("p"), m.int("q")
	// This must be checked here, because crypto/rsa computes with the primes before it checks them.
	if p.BitLen() < 2 || q.BitLen() < 2 || new(big.Int).Mul(p, q).Cmp(n) != 0 {
		return nil, errJWK()
	}
	k := &rsa.PrivateKey{PublicKey: public, D: m.int("d"), Primes: []*big.Int{p, q}}
	k.Precompute()
	if k.Validate() != nil {
		return nil, errJWK()
	}
	return k, checkModulus(k)
}

// ec returns a key of an elliptic curve.
func (m jwkMembers) ec() (any, error) {
	curve, ok := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[m.text("crv")]
	if !ok {
		return nil, errJWK()
	}
	size := (curve.Params().BitSize + 7) / 8
	point := append([]byte{4}, append(padded(m.bytes("x"), size), padded(m.bytes("y"), size)...)...)
	public, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, errJWK()
	}
	if !m.private() {
		return public, nil
	}
	private, err := ecdsa.ParseRawPrivateKey(curve, padded(m.bytes("d"), size))
	if err != nil {
		return nil, errJWK()
	}
	if !private.PublicKey.Equal(public) {
		return nil, errMismatch()
	}
	return private, nil
}

// padded returns a number with leading zeros, which RFC 7518, section 6.2.1.2, requires and some tools omit.
func padded(b []byte, size int) []byte {
	return append(make([]byte, max(0, size-len(b))), b...)
}

// ed25519 returns a key of Ed25519.
func (m jwkMembers) ed25519() (any, error) {
	public := ed25519.PublicKey(m.bytes("x"))
	if len(public) != ed25519.PublicKeySize {
		return nil, errJWK()
	}
	if !m.private() {
		return public, nil
	}
	seed := m.bytes("d")
	if len(seed) != ed25519.SeedSize {
		return nil, errJWK()
	}
	private := ed25519.NewKeyFromSeed(seed)
	if !public.Equal(private.Public()) {
		return nil, errMismatch()
	}
	return private, nil
}

func errMismatch() error {
	return newError("the public members of the JWK do not match its member d; export the key again")
}
