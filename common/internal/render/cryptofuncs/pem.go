package cryptofuncs

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
)

const (
	pemBegin       = "-----BEGIN "
	pemEnd         = "-----END "
	certificate    = "CERTIFICATE"
	privateKeyType = "PRIVATE KEY"
	publicKeyType  = "PUBLIC KEY"
)

// filterPEM returns the blocks of a type, in upper or lower case, in their order. It omits text between the blocks.
// If PEM has no such block, the result is empty, so that a template can test that. Text without any block, and a
// damaged block, are errors.
func filterPEM(blockType, text string) (string, error) {
	if strings.Contains(blockType, pemBegin) {
		return "", newError("the first argument of filterPEM is the PEM instead of the type; write filterPEM \"CERTIFICATE\" .value")
	}
	all, err := pemBlocks(text)
	if err != nil {
		return "", err
	}
	if len(all) == 0 && strings.TrimSpace(text) != "" {
		return "", newError("the value holds no PEM block; if it is base64 or DER, decode or convert it first")
	}
	var out strings.Builder
	for _, b := range all {
		if strings.EqualFold(b.Type, blockType) {
			out.Write(pem.EncodeToMemory(b))
		}
	}
	return out.String(), nil
}

// certSANs returns the subject alternative names of the first certificate: DNS names, IP addresses,
// mail addresses and URIs, in this order; an empty list if it has none.
func certSANs(text string) ([]string, error) {
	certs, err := certificates(text)
	if err != nil {
		return nil, err
	}
	c := certs[0]
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	names = append(names, c.EmailAddresses...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	return names, nil
}

// pemBlocks returns the blocks of PEM as in RFC 7468, with text before, between and after them as openssl writes it.
// encoding/pem skips a block that it cannot read, so that a chain would silently lose a certificate; here that is an
// error.
func pemBlocks(text string) ([]*pem.Block, error) {
	if err := checkSize(text); err != nil {
		return nil, err
	}
	var found []*pem.Block
	for {
		begin := lineWith(text, pemBegin)
		if begin < 0 {
			return found, nil
		}
		text = text[begin:]
		end := lineWith(text, pemEnd)
		next := lineWith(text[1:], pemBegin)
		if end < 0 || next >= 0 && next+1 < end {
			return nil, damaged(len(found))
		}
		stop := len(text)
		if eol := strings.IndexByte(text[end:], '\n'); eol >= 0 {
			stop = end + eol + 1
		}
		b, _ := pem.Decode([]byte(text[:stop]))
		if b == nil {
			return nil, damaged(len(found))
		}
		found, text = append(found, b), text[stop:]
	}
}

func damaged(before int) error {
	return newError("block %d of the PEM is damaged: it needs a BEGIN and an END line of the same type, base64 between them, and real line breaks; store it again", before+1)
}

// lineWith returns the start of the first line with a prefix; -1 if there is none.
func lineWith(text, prefix string) int {
	if strings.HasPrefix(text, prefix) {
		return 0
	}
	if i := strings.Index(text, "\n"+prefix); i >= 0 {
		return i + 1
	}
	return -1
}

// certificates returns the certificates of PEM, at least one. It skips blocks of other types.
func certificates(text string) ([]*x509.Certificate, error) {
	all, err := pemBlocks(text)
	if err != nil {
		return nil, err
	}
	var ders [][]byte
	for _, b := range all {
		if b.Type == certificate || b.Type == "X509 CERTIFICATE" {
			ders = append(ders, b.Bytes)
		}
	}
	if len(ders) == 0 {
		return nil, newError("the PEM holds no CERTIFICATE block; give the certificate as PEM, which begins with a line -----BEGIN CERTIFICATE-----")
	}
	return parseCertificates(ders)
}

func parseCertificates(ders [][]byte) ([]*x509.Certificate, error) {
	if len(ders) > maxCertificates {
		return nil, newError("there are %d certificates, at most %d are allowed; remove those that are not needed", len(ders), maxCertificates)
	}
	certs := make([]*x509.Certificate, 0, len(ders))
	for i, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, newError("certificate %d cannot be read; check it with openssl x509 -text", i+1)
		}
		certs = append(certs, c)
	}
	return certs, nil
}

func encodeCertificates(certs []*x509.Certificate) string {
	var out strings.Builder
	for _, c := range certs {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: certificate, Bytes: c.Raw}))
	}
	return out.String()
}

// privateKey returns the first private key of PEM: PKCS#8, PKCS#1 or SEC 1, whatever its label, because some tools
// write a wrong one. It skips other blocks, for example the EC PARAMETERS that openssl ecparam writes before a key.
func privateKey(text string) (any, error) {
	all, err := pemBlocks(text)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		switch {
		case !strings.HasSuffix(b.Type, privateKeyType):
		case strings.HasPrefix(b.Type, "ENCRYPTED"), strings.Contains(b.Headers["Proc-Type"], "ENCRYPTED"):
			return nil, newError("the private key is encrypted; store it without a passphrase, for example by openssl pkcs8 -topk8 -nocrypt")
		default:
			return parsePrivateKey(b.Bytes)
		}
	}
	return nil, newError("the PEM holds no PRIVATE KEY block; give the key as PEM")
}

// PrivateKey returns the first private key of PEM. The error contains no value.
func PrivateKey(pem string) (any, error) { return privateKey(pem) }

func parsePrivateKey(der []byte) (any, error) {
	if len(der) > maxKey {
		return nil, newError("the private key has %d bytes, at most %d are allowed", len(der), maxKey)
	}
	if k, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return k, checkModulus(k)
	}
	if k, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return k, checkModulus(k)
	}
	if k, err := x509.ParseECPrivateKey(der); err == nil {
		return k, nil
	}
	return nil, newError("the private key cannot be read; it must be RSA, ECDSA on a NIST curve or Ed25519, as PKCS#8, PKCS#1 or SEC 1")
}

// checkModulus refuses RSA keys whose private operation is slow: large keys, and those that are not the product of
// two primes of at most half the maximum size each. All tools make such products.
func checkModulus(key any) error {
	k, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil
	}
	if k.N.BitLen() > maxModulus {
		return newError("the RSA key has %d bits, at most %d are supported", k.N.BitLen(), maxModulus)
	}
	for _, p := range k.Primes {
		if len(k.Primes) > 2 || p.BitLen() > maxModulus/2 {
			return newError("the RSA key has more than two primes, or one of more than %d bits; use a key with two primes", maxModulus/2)
		}
	}
	return nil
}
