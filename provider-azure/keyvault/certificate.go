package keyvault

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azsecrets"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// These are the properties of a certificate.
const (
	chainProperty   = "tls.crt"
	keyProperty     = "tls.key"
	archiveProperty = "keystore.p12"
	derProperty     = "cer"
)

// maxChain is the maximum number of certificates in one chain.
const maxChain = 100

const notExportable = "the policy of the certificate makes its private key non-exportable; make it exportable and issue a new version, or read the property " + chainProperty

// certificate reads a certificate as the secret of the same name, because only that has the chain and the private key. If it is an
// archive, Key Vault converts it to PEM in a second call.
func (c *vault) certificate(ctx context.Context, ref provider.Ref, name string) (provider.Value, error) {
	s, version, err := c.secret(ctx, ref, name, nil)
	if err != nil {
		return provider.Value{}, err
	}
	invalid := func(why string) (provider.Value, error) {
		return provider.Value{}, provider.NewError(provider.Invalid, "%s: %s", about(ref), why)
	}
	if !deref(s.Managed) {
		return invalid("is a secret that is not part of a certificate; write the key without cert/")
	}
	text, archive := *s.Value, []byte(nil)
	switch azsecrets.ContentType(deref(s.ContentType)) {
	case azsecrets.ContentTypePEM:
	case azsecrets.ContentTypePFX:
		if archive, err = base64.StdEncoding.DecodeString(text); err != nil {
			return provider.Value{}, notKeyVault(ref)
		}
		pinned := ref
		pinned.Version = version
		converted, _, err := c.secret(ctx, pinned, name, &azsecrets.GetSecretOptions{OutContentType: to.Ptr(azsecrets.ContentTypePEM)})
		if err != nil {
			return provider.Value{}, err
		}
		text = *converted.Value
	default:
		return invalid("has an unknown content type; use that of PEM or PKCS#12 in the policy of the certificate")
	}
	chain, key, err := readPEM([]byte(text))
	if err != nil {
		return invalid(err.Error())
	}
	v := valueOf(ref, encodeChain(chain), version, s.Tags)
	v.Further = map[string]provider.Further{
		chainProperty: {Data: v.Data},
		derProperty:   {Data: chain[0].Raw},
		keyProperty:   {Data: key},
	}
	if archive != nil {
		v.Further[archiveProperty] = provider.Further{Data: archive}
	}
	if key == nil {
		delete(v.Further, archiveProperty)
		v.Further[keyProperty] = provider.Further{Refused: notExportable}
	}
	return v, nil
}

// readPEM returns the certificates of a text, that of the private key first, and the private key in PEM; nil if there is none. A key that
// matches none of the certificates is an error. Errors contain no part of the text.
func readPEM(text []byte) (chain []*x509.Certificate, key []byte, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY") && key == nil:
			key = pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})
		case block.Type == "CERTIFICATE" && len(chain) == maxChain:
			return nil, nil, errors.Errorf("has more than %d certificates; issue a version with only its own chain", maxChain)
		case block.Type == "CERTIFICATE":
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, nil, errors.New("has a certificate that cannot be parsed, for example because of its key type; use RSA, or EC on P-256, P-384 or P-521")
			}
			chain = append(chain, c)
		}
	}
	if len(chain) == 0 {
		return nil, nil, errors.New("has no certificate in its secret; issue a new version")
	}
	var private crypto.PrivateKey
	if key != nil {
		if private, err = provider.PrivateKey(key); err != nil {
			return nil, nil, err
		}
	}
	chain, err = provider.LeafFirst(chain, private)
	return chain, key, err
}

func encodeChain(chain []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range chain {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	return out.Bytes()
}
