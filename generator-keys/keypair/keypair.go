// Package keypair generates private keys for the Kinds of this module.
package keypair

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

const (
	minRSA     = 2048
	defaultRSA = 3072
	maxRSA     = 4096
)

// A Maker generates private keys of one type and size.
type Maker func(ctx context.Context) (crypto.Signer, error)

// NewMaker returns the Maker for settings; def is the type if they name none. Its errors are of class Invalid and name
// the field to fix.
func NewMaker(s v1alpha1.KeySettings, def v1alpha1.KeyType) (Maker, error) {
	of := s.KeyType
	if of == "" {
		of = def
	}
	if s.KeySize != 0 && s.KeyType != v1alpha1.KeyTypeRSA && s.KeyType != v1alpha1.KeyTypeECDSA {
		return nil, provider.NewError(provider.Invalid, "spec.keySize: needs spec.keyType rsa or ecdsa; set spec.keyType, or remove spec.keySize")
	}
	switch of {
	case v1alpha1.KeyTypeEd25519:
		return func(context.Context) (crypto.Signer, error) {
			_, key, err := ed25519.GenerateKey(nil)
			return key, err
		}, nil
	case v1alpha1.KeyTypeECDSA:
		return newECDSA(s.KeySize)
	case v1alpha1.KeyTypeRSA:
		return newRSA(s.KeySize)
	}
	return nil, provider.NewError(provider.Invalid, "spec.keyType: %.64q is unknown; use rsa, ecdsa or ed25519", string(s.KeyType))
}

var curves = map[int32]elliptic.Curve{0: elliptic.P256(), 256: elliptic.P256(), 384: elliptic.P384(), 521: elliptic.P521()}

func newECDSA(size int32) (Maker, error) {
	curve, ok := curves[size]
	if !ok {
		return nil, provider.NewError(provider.Invalid, "spec.keySize: is %d; an ECDSA key has 256, 384 or 521 bits", size)
	}
	return func(context.Context) (crypto.Signer, error) { return ecdsa.GenerateKey(curve, rand.Reader) }, nil
}

func newRSA(size int32) (Maker, error) {
	if size == 0 {
		size = defaultRSA
	}
	if size < minRSA || size > maxRSA || size%8 != 0 {
		return nil, provider.NewError(provider.Invalid, "spec.keySize: is %d; use %d to %d bits for an RSA key, in steps of 8", size, minRSA, maxRSA)
	}
	return func(ctx context.Context) (crypto.Signer, error) {
		end, err := provider.Work(ctx) // It takes a processor for seconds, and one tenant can ask for many.
		if err != nil {
			return nil, err
		}
		defer end()
		return rsa.GenerateKey(rand.Reader, int(size))
	}, nil
}

// Make generates a key, unless ctx has ended. Its errors are of class Unavailable.
func (m Maker) Make(ctx context.Context) (crypto.Signer, error) {
	if err := ctx.Err(); err != nil {
		return nil, provider.Safe(err)
	}
	key, err := m(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, provider.Safe(ctx.Err())
	case err != nil:
		return nil, provider.NewError(provider.Unavailable, "the system generated no key; retrying")
	}
	return key, nil
}
