package vaulttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// lifetime is the default validity of certificates.
const lifetime = 24 * time.Hour

// An Authority signs certificates for a test.
type Authority struct {
	// PEM is the authority's own certificate.
	PEM []byte

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns a new Authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.cert = &x509.Certificate{
		Subject:               pkix.Name{CommonName: "test authority"},
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	var keyPEM []byte
	a.PEM, keyPEM = a.sign(a.cert)
	der, _ := pem.Decode(a.PEM)
	block, _ := pem.Decode(keyPEM)
	var err error
	if a.cert, err = x509.ParseCertificate(der.Bytes); err != nil {
		t.Fatal(err)
	}
	if a.key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
		t.Fatal(err)
	}
	return a
}

// Pool returns a pool with the Authority's certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Server returns a certificate for 127.0.0.1 that expires at end, and its key, in PEM form.
func (a *Authority) Server(end time.Time) (cert, key []byte) {
	return a.sign(&x509.Certificate{
		NotAfter:    end,
		Subject:     pkix.Name{CommonName: "vault"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client returns a client certificate and its key, in PEM form.
func (a *Authority) Client(name string) (cert, key []byte) {
	return a.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// sign completes and signs a certificate. The first certificate that an Authority signs is its own.
func (a *Authority) sign(c *x509.Certificate) (cert, key []byte) {
	a.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	c.NotBefore = time.Now().Add(-time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(lifetime)
	}
	c.KeyUsage |= x509.KeyUsageDigitalSignature
	signer := a.key
	if signer == nil {
		signer = own
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &own.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
