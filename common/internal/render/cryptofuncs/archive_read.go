package cryptofuncs

import (
	"crypto/hmac"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"strings"
)

// pkcs12key is pkcs12keyPass with an empty password.
func pkcs12key(archive string) (string, error) { return pkcs12keyPass("", archive) }

// pkcs12keyPass returns all private keys of a PKCS#12 archive, of any algorithm, as PRIVATE KEY blocks in PKCS#8, in
// the order of the archive. An archive without a key is an error.
func pkcs12keyPass(pass, archive string) (string, error) {
	p, bags, err := openArchive(pass, archive)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, b := range bags {
		key, err := p.key(b)
		if err != nil {
			return "", err
		}
		if key != nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: privateKeyType, Bytes: key}))
		}
	}
	if out.Len() == 0 {
		return "", newError("the archive has no private key, like a trust store; use pkcs12cert for its certificates")
	}
	return out.String(), nil
}

// pkcs12cert is pkcs12certPass with an empty password.
func pkcs12cert(archive string) (string, error) { return pkcs12certPass("", archive) }

// pkcs12certPass returns all certificates of a PKCS#12 archive as PEM, in the order of LeafFirst: first the certificate of
// the first private key of the archive. An archive without a certificate is an error, and one whose key matches none of them;
// one without a key is not, unlike in External Secrets Operator.
func pkcs12certPass(pass, archive string) (string, error) {
	p, bags, err := openArchive(pass, archive)
	if err != nil {
		return "", err
	}
	var ders [][]byte
	for _, b := range bags {
		der, err := b.certificate()
		if err != nil {
			return "", err
		}
		if der != nil {
			ders = append(ders, der)
		}
	}
	if len(ders) == 0 {
		return "", newError("the archive has no certificate; use pkcs12key for its private keys")
	}
	certs, err := parseCertificates(ders)
	if err != nil {
		return "", err
	}
	if certs, err = LeafFirst(certs, p.firstKey(bags)); err != nil {
		return "", err
	}
	return encodeCertificates(certs), nil
}

// firstKey returns the first private key of an archive; nil if there is none, or none that certificates have.
func (p password) firstKey(bags []safeBag) any {
	for _, b := range bags {
		der, err := p.key(b)
		if err == nil && der == nil {
			continue
		}
		if err == nil {
			if key, err := parsePrivateKey(der); err == nil {
				return key
			}
		}
		return nil
	}
	return nil
}

// This package reads archives itself and does not use go-pkcs12, which reads only one key and two parts, and runs
// every derivation that an archive asks for. Some parameters of derivations are themselves encrypted, so they cannot
// be checked in advance. The types follow RFC 7292, sections 4 and 5. Explicitly tagged values stay raw; explicit
// reads them.
type pfx struct {
	Version  int
	AuthSafe contentInfo
	MacData  macData `asn1:"optional"`
}

type contentInfo struct {
	Type    asn1.ObjectIdentifier
	Content asn1.RawValue `asn1:"optional"`
}

type macData struct {
	Mac struct {
		Algorithm pkix.AlgorithmIdentifier
		Digest    []byte
	}
	Salt       []byte
	Iterations int `asn1:"optional,default:1"`
}

type encryptedData struct {
	Version int
	Content struct {
		Type      asn1.ObjectIdentifier
		Algorithm pkix.AlgorithmIdentifier
		Encrypted []byte `asn1:"tag:0,optional"`
	}
}

type safeBag struct {
	ID         asn1.ObjectIdentifier
	Value      asn1.RawValue
	Attributes asn1.RawValue `asn1:"optional"`
}

type certBag struct {
	ID    asn1.ObjectIdentifier
	Value asn1.RawValue
}

type encryptedPrivateKeyInfo struct {
	Algorithm pkix.AlgorithmIdentifier
	Encrypted []byte
}

// privateKeyInfo is PKCS#8 with the optional public key of RFC 5958.
type privateKeyInfo struct {
	Version    int
	Algorithm  pkix.AlgorithmIdentifier
	Key        []byte
	Attributes asn1.RawValue `asn1:"optional"`
	PublicKey  asn1.RawValue `asn1:"optional"`
}

const (
	oidData          = "1.2.840.113549.1.7.1"
	oidEncryptedData = "1.2.840.113549.1.7.6"

	oidKeyBag          = "1.2.840.113549.1.12.10.1.1"
	oidShroudedKeyBag  = "1.2.840.113549.1.12.10.1.2"
	oidCertBag         = "1.2.840.113549.1.12.10.1.3"
	oidSafeContentsBag = "1.2.840.113549.1.12.10.1.6"

	oidX509Certificate = "1.2.840.113549.1.9.22.1"
)

// openArchive verifies the MAC of an archive, and returns its bags and the matching form of the password. It also
// reads an archive without a MAC, because Java writes trust stores without a password that way.
func openArchive(pass, archive string) (password, []safeBag, error) {
	work := budget(maxKDF)
	p := password{utf8: pass, bmp: bmpString(pass), work: &work}
	switch err := checkPassword(pass); {
	case err != nil:
		return p, nil, err
	case checkSize(archive) != nil:
		return p, nil, checkSize(archive)
	case strings.HasPrefix(archive, "MI"):
		return p, nil, newError("the archive is base64; decode it first, with b64dec or decodingStrategy: Base64")
	case strings.HasPrefix(archive, "0\x80"):
		return p, nil, newError("the archive is BER with indefinite lengths, which is not supported; write it again with openssl pkcs12")
	}
	var file pfx
	if err := unmarshal([]byte(archive), &file); err != nil {
		return p, nil, err
	}
	var content []byte
	if file.Version != 3 || file.AuthSafe.Type.String() != oidData {
		return p, nil, errAlgorithm()
	}
	if err := explicit(file.AuthSafe.Content, &content); err != nil {
		return p, nil, err
	}
	if len(file.MacData.Mac.Algorithm.Algorithm) > 0 {
		var err error
		if p, err = p.verify(file.MacData, content); err != nil {
			return p, nil, err
		}
	}
	bags, err := p.open(content)
	return p, bags, err
}

// verify returns the form of the password that produces the right MAC: an empty password is two zero bytes for some
// tools and zero bytes for others.
func (p password) verify(m macData, content []byte) (password, error) {
	forms := [][]byte{p.bmp}
	if p.utf8 == "" {
		forms = append(forms, nil)
	}
	for _, form := range forms {
		p.bmp = form
		mac, err := p.mac(m, content)
		if err != nil {
			return p, err
		}
		if hmac.Equal(mac, m.Mac.Digest) {
			return p, nil
		}
	}
	return p, p.wrong()
}

// open returns the bags of all parts of an archive.
func (p password) open(content []byte) ([]safeBag, error) {
	var parts []contentInfo
	if err := unmarshal(content, &parts); err != nil {
		return nil, err
	}
	var all []safeBag
	for _, part := range parts {
		var plain []byte
		switch part.Type.String() {
		case oidData:
			if err := explicit(part.Content, &plain); err != nil {
				return nil, err
			}
		case oidEncryptedData:
			var e encryptedData
			err := explicit(part.Content, &e)
			if err == nil {
				plain, err = p.decrypt(e.Content.Algorithm, e.Content.Encrypted)
			}
			if err != nil {
				return nil, err
			}
		default:
			return nil, errAlgorithm()
		}
		var bags []safeBag
		if err := unmarshal(plain, &bags); err != nil {
			return nil, err
		}
		all = append(all, bags...)
	}
	for _, b := range all {
		if b.ID.String() == oidSafeContentsBag {
			return nil, newError("the archive has nested bags, which are not supported; write it again with openssl pkcs12")
		}
	}
	return all, nil
}

// key returns the private key in a bag as PKCS#8; nil for a bag of another kind. It does not parse the key itself, so
// that any algorithm works and no time is spent on it.
func (p password) key(b safeBag) ([]byte, error) {
	der := b.Value.Bytes
	switch b.ID.String() {
	case oidKeyBag:
	case oidShroudedKeyBag:
		var e encryptedPrivateKeyInfo
		err := explicit(b.Value, &e)
		if err == nil {
			der, err = p.decrypt(e.Algorithm, e.Encrypted)
		}
		if err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	return der, unmarshal(der, &privateKeyInfo{})
}

// certificate returns the X.509 certificate in a bag as DER; nil for a bag of another kind.
func (b safeBag) certificate() ([]byte, error) {
	if b.ID.String() != oidCertBag {
		return nil, nil
	}
	var c certBag
	if err := explicit(b.Value, &c); err != nil {
		return nil, err
	}
	if c.ID.String() != oidX509Certificate {
		return nil, nil
	}
	var der []byte
	err := explicit(c.Value, &der)
	return der, err
}

// explicit reads the value within the explicit tag [0].
func explicit(v asn1.RawValue, into any) error {
	if v.Class != asn1.ClassContextSpecific || v.Tag != 0 || !v.IsCompound {
		return errDamaged()
	}
	return unmarshal(v.Bytes, into)
}

func errDamaged() error {
	return newError("the archive is not PKCS#12 in DER, or is damaged; check it with openssl pkcs12 -info, and store it as bytes")
}

// ArchivePEM returns the private keys and then the certificates of an archive without a password, as pkcs12key and pkcs12cert do.
func ArchivePEM(archive string) (string, error) {
	key, err := pkcs12key(archive)
	if err != nil {
		return "", err
	}
	certificates, err := pkcs12cert(archive)
	return key + certificates, err
}
