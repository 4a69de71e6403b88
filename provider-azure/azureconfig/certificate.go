package azureconfig

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// parseCertificate returns the certificates and the private key of PEM, or of PKCS#12 without a password. Azure's library gets only PEM:
// it does not read the PKCS#12 of current tools, such as OpenSSL 3, and does not limit the work for which an archive asks.
func parseCertificate(raw []byte) ([]*x509.Certificate, crypto.PrivateKey, error) {
	if block, _ := pem.Decode(raw); block == nil {
		var err error
		if raw, err = provider.ArchivePEM(raw); err != nil {
			return nil, nil, err
		}
	}
	for rest := raw; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.Contains(block.Type, "PRIVATE KEY") && len(block.Bytes) > provider.MaxPrivateKey {
			return nil, nil, provider.NewError(provider.Invalid, "has a private key of more than %d bytes", provider.MaxPrivateKey)
		}
	}
	return azidentity.ParseCertificates(raw, nil)
}
