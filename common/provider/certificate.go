package provider

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/render/cryptofuncs"
)

// Authorities returns the PEM certificates of the authorities that can sign a server's certificate; nil means those of the
// system. at is the field of the spec that embeds them. Errors name the field.
func Authorities(ctx context.Context, creds Credentials, at string, a v1alpha1.Authorities) (pem []byte, err error) {
	field := at + ".caBundle"
	pem = a.CABundle
	if p := a.CAProvider; p != nil {
		field = at + ".caProvider"
		switch {
		case len(pem) > 0:
			err = NewError(Invalid, "set either caBundle or caProvider")
		case p.Type == v1alpha1.CAProviderSecret:
			pem, err = creds.SecretValue(ctx, p.SecretKeySelector)
		case p.Type == v1alpha1.CAProviderConfigMap:
			pem, err = creds.ConfigMapValue(ctx, v1alpha1.ConfigMapKeySelector(p.SecretKeySelector))
		default:
			err = NewError(Invalid, "type %q is not valid; write Secret or ConfigMap", string(p.Type))
		}
	}
	if err != nil || len(pem) == 0 {
		return nil, Field(field, err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, NewError(Invalid, "%s: has no certificate in PEM form; store the certificate of the authority there", field)
	}
	return pem, nil
}

// ServerTLS returns the TLS configuration of a client whose server has a certificate of these authorities. Arguments and errors are those
// of Authorities.
func ServerTLS(ctx context.Context, creds Credentials, at string, a v1alpha1.Authorities) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	pem, err := Authorities(ctx, creds, at, a)
	if err != nil {
		return nil, err
	}
	if pem != nil {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AppendCertsFromPEM(pem)
	}
	return c, nil
}

// ArchivePEM returns the private key and the certificates of a PKCS#12 archive without a password, as PEM, in the order of LeafFirst. The
// archive sets the work of deriving its keys, so one that takes more than a second is refused, which libraries do not do. The error has
// class Invalid and contains no value.
func ArchivePEM(archive []byte) ([]byte, error) {
	pem, err := cryptofuncs.ArchivePEM(string(archive))
	if err != nil {
		return nil, NewError(Invalid, "is not a PKCS#12 archive with a private key and a certificate, without a password and with at most 600,000 iterations")
	}
	return []byte(pem), nil
}

// MaxPrivateKey limits a private key, in bytes of DER. Decoding an RSA key takes time with the third power of its size, and no timeout ends
// that. One of 8,192 bits has 4.7 KB.
const MaxPrivateKey = 8 << 10

// PrivateKey returns the first private key of PEM, in PKCS#8, PKCS#1 or SEC 1. The error has class Invalid and contains no value.
func PrivateKey(pem []byte) (crypto.PrivateKey, error) {
	key, err := cryptofuncs.PrivateKey(string(pem))
	if err != nil {
		return nil, NewError(Invalid, "%s", err.Error())
	}
	return key, nil
}

// LeafFirst orders certificates: that of the private key, its issuers up to the root, and then all others. A key that matches none of
// them is an error of class Invalid. Without a key (nil) the leaf is found by the issuers, and if it is not clear the order stays.
func LeafFirst(certs []*x509.Certificate, key crypto.PrivateKey) ([]*x509.Certificate, error) {
	ordered, err := cryptofuncs.LeafFirst(certs, key)
	if err != nil {
		return nil, NewError(Invalid, "%s", err.Error())
	}
	return ordered, nil
}

// KeyPair returns the certificates and the private key of a client, both in PEM. The certificates can have any order. A key that matches
// none of them is an error of class Invalid.
func KeyPair(certs, key []byte) (tls.Certificate, error) {
	ordered, err := cryptofuncs.PairPEM(string(certs), string(key))
	if err != nil {
		return tls.Certificate{}, NewError(Invalid, "%s", err.Error())
	}
	pair, err := tls.X509KeyPair([]byte(ordered), key)
	if err != nil {
		return tls.Certificate{}, NewError(Invalid, "TLS does not accept the certificate and its private key; use RSA, ECDSA or Ed25519")
	}
	return pair, nil
}

// A CertificateFault is the problem of a server's certificate, as the end of a sentence that starts with "the
// certificate".
type CertificateFault string

// The faults of a certificate.
const (
	CertificateUntrusted CertificateFault = "is signed by an authority that is not trusted"
	CertificateOtherName CertificateFault = "is for another name"
	CertificateExpired   CertificateFault = "has expired, or is not valid yet"
	CertificateBad       CertificateFault = "cannot be verified"
)

// certificateMessages are the starts of messages of crypto/x509 and crypto/tls.
var certificateMessages = []struct {
	text  string
	fault CertificateFault
}{
	{"x509: certificate signed by unknown authority", CertificateUntrusted},
	{"x509: certificate has expired or is not yet valid", CertificateExpired},
	{"x509: certificate is valid for ", CertificateOtherName},
	{"x509: certificate is not valid for any names", CertificateOtherName},
	{"x509: certificate relies on legacy Common Name field", CertificateOtherName},
	{"x509: cannot validate certificate for ", CertificateOtherName},
	{"tls: failed to verify certificate", CertificateBad},
}

// CertificateFaultOf returns why a server's certificate was not accepted; empty if err has another cause. It also
// compares texts, because gRPC and some login packages keep only the text of the error.
func CertificateFaultOf(err error) CertificateFault {
	if err == nil {
		return ""
	}
	var untrusted x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return CertificateUntrusted
	case errors.As(err, &name):
		return CertificateOtherName
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return CertificateExpired
	case errors.As(err, &invalid), errors.As(err, &verification):
		return CertificateBad
	}
	for _, t := range certificateMessages {
		if strings.Contains(err.Error(), t.text) {
			return t.fault
		}
	}
	return ""
}
