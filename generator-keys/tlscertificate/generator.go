// Package tlscertificate generates certificates for the generator Kinds TLSCertificate and ClusterTLSCertificate.
package tlscertificate

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"time"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-keys/keypair"
)

// Kinds returns the generator Kinds that this package serves.
func Kinds() []provider.Kind {
	return []provider.Kind{
		provider.GeneratorKindOf(Connect[*v1alpha1.TLSCertificate]).ReadOnly(),
		provider.ClusterGeneratorKindOf(Connect[*v1alpha1.ClusterTLSCertificate]).ReadOnly(),
	}
}

// An Object is one of the Kinds of this package.
type Object interface {
	provider.GeneratorObject

	// Settings returns what to generate.
	Settings() *v1alpha1.TLSCertificateSettings
}

// Connect returns the Generator of an object. It reads the authority. Its errors name the field to fix.
func Connect[S Object](ctx context.Context, s S, creds provider.Credentials) (provider.Generator, error) {
	settings := s.Settings()
	keys, err := keypair.NewMaker(settings.KeySettings, v1alpha1.KeyTypeECDSA)
	if err != nil {
		return nil, err
	}
	t, err := newTemplate(settings)
	if err != nil {
		return nil, err
	}
	g := &Generator{keys: keys, template: t}
	if settings.CASecretRef == nil {
		return g, nil
	}
	if g.authority, err = readAuthority(ctx, *settings.CASecretRef, creds); err != nil {
		return nil, err
	}
	return g, nil
}

// A Generator generates the certificates of one object. It makes no requests, and has no state.
type Generator struct {
	keys     keypair.Maker
	template template
	// authority signs the certificates; nil if they are self-signed.
	authority *authority
}

// Generate generates a key and its certificate.
func (g *Generator) Generate(ctx context.Context) (provider.Generated, error) {
	now := time.Now()
	if err := g.authority.check(now); err != nil {
		return provider.Generated{}, err
	}
	key, err := g.keys.Make(ctx)
	if err != nil {
		return provider.Generated{}, err
	}
	wanted := g.template.at(now, key)
	leaf, err := g.sign(wanted, key)
	if err != nil {
		return provider.Generated{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return provider.Generated{}, provider.NewError(provider.Unavailable, "the key cannot be written as PKCS #8")
	}
	chain, root := g.authority.above(leaf)
	return provider.Generated{
		Expires: leaf.NotAfter,
		Replace: g.template.replace(leaf.NotAfter),
		Values: map[string][]byte{
			"tls.crt": encode(append([]*x509.Certificate{leaf}, chain...)...),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
			"ca.crt":  encode(root),
		},
	}, nil
}

// sign signs a certificate for a key, and verifies it as a client would.
func (g *Generator) sign(wanted *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	parent, signer := wanted, key
	if g.authority != nil {
		parent, signer = g.authority.limit(wanted), g.authority.key
	}
	der, err := x509.CreateCertificate(rand.Reader, wanted, parent, key.Public(), signer)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec: the certificate cannot be signed; check its names, and the key of spec.caSecretRef")
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, provider.NewError(provider.Invalid, "spec: the signed certificate cannot be read; check its names")
	}
	return leaf, g.authority.verify(leaf)
}

// encode writes certificates as PEM.
func encode(certificates ...*x509.Certificate) []byte {
	var all []byte
	for _, c := range certificates {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return all
}
