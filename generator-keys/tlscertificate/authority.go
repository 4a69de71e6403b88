package tlscertificate

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

// An authority signs certificates. The methods of nil are those for self-signed certificates.
type authority struct {
	// certificates has the certificate of the key, and then those of higher authorities.
	certificates []*x509.Certificate
	key          crypto.Signer
}

const caField = "spec.caSecretRef: "

// readAuthority reads an authority from a Secret. Its errors name the field to fix.
func readAuthority(ctx context.Context, ref v1alpha1.CASecretReference, creds provider.Credentials) (*authority, error) {
	var parts [2][]byte
	for i, key := range []string{"tls.crt", "tls.key"} {
		value, err := creds.SecretValue(ctx, common.SecretKeySelector{Name: ref.Name, Namespace: ref.Namespace, Key: key})
		if err != nil {
			return nil, ofCA(err)
		}
		parts[i] = value
	}
	if len(parts[1]) > 2*provider.MaxPrivateKey { // It is PEM.
		return nil, invalid(caField+"tls.key of Secret %s has more than %d bytes; use an RSA key of at most 8192 bits, ECDSA or Ed25519", ref.Name, 2*provider.MaxPrivateKey)
	}
	pair, err := tls.X509KeyPair(parts[0], parts[1])
	switch {
	case err != nil && strings.Contains(err.Error(), "does not match"):
		return nil, invalid(caField+"tls.key of Secret %s is not the key of the first certificate in tls.crt; correct one of them", ref.Name)
	case err != nil:
		return nil, invalid(caField+"tls.crt and tls.key of Secret %s cannot be read; store a PEM certificate and its unencrypted PEM key", ref.Name)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, invalid(caField+"tls.key of Secret %s cannot sign; use an RSA, ECDSA or Ed25519 key", ref.Name)
	}
	a := &authority{key: key}
	for _, der := range pair.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, invalid(caField+"tls.crt of Secret %s has a certificate that cannot be read; replace it", ref.Name)
		}
		a.certificates = append(a.certificates, c)
	}
	return a, a.checkChain(ref.Name)
}

// ofCA returns an error of Credentials with the field of the reference.
func ofCA(err error) error {
	var e *provider.Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Message = caField + strings.TrimPrefix(e.Message, "auth: ")
	return &named
}

// checkChain checks that all certificates are authorities, each signed by the next, and that they are valid now.
func (a *authority) checkChain(secret string) error {
	for i, c := range a.certificates {
		switch {
		case !c.BasicConstraintsValid || !c.IsCA || c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
			return invalid(caField+"certificate %d in tls.crt of Secret %s is not an authority; use one with CA:TRUE and the key usage certificate sign", i+1, secret)
		case i > 0 && a.certificates[i-1].CheckSignatureFrom(c) != nil:
			return invalid(caField+"certificate %d in tls.crt of Secret %s is not signed by the next; correct the order", i, secret)
		}
	}
	return a.check(time.Now())
}

// check checks that the certificates are valid at a time.
func (a *authority) check(now time.Time) error {
	if a == nil {
		return nil
	}
	for i, c := range a.certificates {
		switch {
		case !now.Before(c.NotAfter):
			return invalid(caField+"certificate %d in tls.crt expired at %s; renew the authority", i+1, c.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(c.NotBefore):
			return invalid(caField+"certificate %d in tls.crt is not valid before %s; use another authority, or wait", i+1, c.NotBefore.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// limit shortens the validity of a certificate to that of the authority, and returns the certificate that signs it.
func (a *authority) limit(leaf *x509.Certificate) *x509.Certificate {
	for _, c := range a.certificates {
		if c.NotAfter.Before(leaf.NotAfter) {
			leaf.NotAfter = c.NotAfter
		}
		if c.NotBefore.After(leaf.NotBefore) {
			leaf.NotBefore = c.NotBefore
		}
	}
	return a.certificates[0]
}

// above returns what a server sends after a certificate, and the highest authority that is known.
func (a *authority) above(leaf *x509.Certificate) (chain []*x509.Certificate, root *x509.Certificate) {
	if a == nil {
		return nil, leaf
	}
	last := len(a.certificates) - 1
	return a.certificates[:last], a.certificates[last]
}

// verify checks that the authorities permit the names and usages of a certificate.
func (a *authority) verify(leaf *x509.Certificate) error {
	chain, root := a.above(leaf)
	roots, others := x509.NewCertPool(), x509.NewCertPool()
	roots.AddCert(root)
	for _, c := range chain {
		others.AddCert(c)
	}
	for _, usage := range leaf.ExtKeyUsage {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: others, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: time.Now()})
		if err != nil {
			return invalid(caField + "the authority does not permit this certificate; check its name constraints, usages and path length against spec.dnsNames, spec.ipAddresses, spec.uris and spec.usages")
		}
	}
	return nil
}
