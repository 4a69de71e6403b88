package keyvault

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// publicKeyProperty is the property of a key that is not a member of its JWK.
const publicKeyProperty = "publicKey"

// key reads the public part of a key as a JWK (RFC 7517). Key Vault returns no private part.
func (c *vault) key(ctx context.Context, ref provider.Ref, name string) (provider.Value, error) {
	err := c.config.Ready(ctx)
	var out azkeys.GetKeyResponse
	if err == nil {
		out, err = c.keys.GetKey(ctx, name, ref.Version, nil)
	}
	if err != nil {
		return provider.Value{}, explain(ctx, err, ref)
	}
	key := deref(out.Key)
	got, version, ok := parseURL(keys, (*string)(key.KID))
	if err := checkAnswer(ref, answer{name: got, version: version, valid: ok}, name); err != nil {
		return provider.Value{}, err
	}
	a := deref(out.Attributes)
	if err := usable(ref, period{a.Enabled, a.NotBefore, a.Expires}, time.Now()); err != nil {
		return provider.Value{}, err
	}
	data, err := json.Marshal(key)
	if err != nil {
		return provider.Value{}, notKeyVault(ref)
	}
	v := valueOf(ref, data, version, out.Tags)
	if text := publicPEM(key); text != nil {
		v.Further = map[string]provider.Further{publicKeyProperty: {Data: text}}
	}
	return v, nil
}

// publicPEM returns the public part of a key as a PUBLIC KEY block; nil for a key without one, or on a curve that Go does not have.
func publicPEM(key azkeys.JSONWebKey) []byte {
	public := publicKey(key)
	if public == nil {
		return nil
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

var curves = map[azkeys.CurveName]elliptic.Curve{
	azkeys.CurveNameP256: elliptic.P256(),
	azkeys.CurveNameP384: elliptic.P384(),
	azkeys.CurveNameP521: elliptic.P521(),
}

// publicKey returns the public key of a JWK; nil if it has none that is valid. The members are those of RFC 7518, section 6.
func publicKey(key azkeys.JSONWebKey) crypto.PublicKey {
	switch deref(key.Kty) {
	case azkeys.KeyTypeRSA, azkeys.KeyTypeRSAHSM:
		e := new(big.Int).SetBytes(key.E)
		if len(key.N) == 0 || !e.IsInt64() || e.Sign() == 0 {
			return nil
		}
		return &rsa.PublicKey{N: new(big.Int).SetBytes(key.N), E: int(e.Int64())}
	case azkeys.KeyTypeEC, azkeys.KeyTypeECHSM:
		curve := curves[deref(key.Crv)]
		if curve == nil {
			return nil
		}
		size := (curve.Params().BitSize + 7) / 8
		x, y := new(big.Int).SetBytes(key.X), new(big.Int).SetBytes(key.Y)
		if x.BitLen() > 8*size || y.BitLen() > 8*size {
			return nil
		}
		point := make([]byte, 1+2*size)
		point[0] = 4 // uncompressed, by SEC 1, section 2.3.3
		x.FillBytes(point[1 : 1+size])
		y.FillBytes(point[1+size:])
		public, err := ecdsa.ParseUncompressedPublicKey(curve, point)
		if err != nil {
			return nil
		}
		return public
	}
	return nil
}
