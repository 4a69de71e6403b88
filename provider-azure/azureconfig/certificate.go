package azureconfig

import (
	"crypto"
	"crypto/x509"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"software.sslmate.com/src/go-pkcs12"
)

// parseCertificate returns the certificates and the private key of PEM, or of PKCS#12 without a password. Azure's library reads PEM, and
// not the PKCS#12 of current tools, such as OpenSSL 3.
func parseCertificate(raw []byte) ([]*x509.Certificate, crypto.PrivateKey, error) {
	if key, leaf, issuers, err := pkcs12.DecodeChain(raw, ""); err == nil {
		return append([]*x509.Certificate{leaf}, issuers...), key, nil
	}
	return azidentity.ParseCertificates(raw, nil)
}
