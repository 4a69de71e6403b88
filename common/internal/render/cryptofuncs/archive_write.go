package cryptofuncs

import (
	"bytes"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"software.sslmate.com/src/go-pkcs12"
)

// pemToPkcs12 is pemToPkcs12Pass with an empty password.
func pemToPkcs12(cert, key string) (string, error) { return pemToPkcs12Pass(cert, key, "") }

// pemToPkcs12Pass returns a PKCS#12 archive of a private key and its certificate, in base64.
// Other certificates are left out; fullPemToPkcs12Pass keeps them. See encodeArchive for the format.
func pemToPkcs12Pass(cert, key, password string) (string, error) {
	k, leaf, _, err := pair(cert, key)
	if err != nil {
		return "", err
	}
	return encodeArchive(k, leaf, nil, password)
}

// fullPemToPkcs12 is fullPemToPkcs12Pass with an empty password.
func fullPemToPkcs12(certs, key string) (string, error) { return fullPemToPkcs12Pass(certs, key, "") }

// fullPemToPkcs12Pass returns a PKCS#12 archive of a private key, its certificate, and the other
// certificates as its chain, in base64. See encodeArchive for the format.
func fullPemToPkcs12Pass(certs, key, password string) (string, error) {
	k, leaf, others, err := pair(certs, key)
	if err != nil {
		return "", err
	}
	return encodeArchive(k, leaf, others, password)
}

// pair returns a private key, its certificate, and the other certificates in their order. External Secrets Operator
// uses the first certificate even if the key does not match. A server cannot use such an archive, so here that is an
// error.
func pair(certs, key string) (private any, leaf *x509.Certificate, others []*x509.Certificate, err error) {
	all, err := certificates(certs)
	if err != nil {
		return nil, nil, nil, err
	}
	private, err = privateKey(key)
	if err != nil {
		return nil, nil, nil, err
	}
	i, err := indexOf(all, private)
	if err != nil {
		return nil, nil, nil, err
	}
	return private, all[i], slices.Delete(slices.Clone(all), i, i+1), nil
}

// encodeArchive returns a PKCS#12 archive in base64: AES-256-CBC and PBKDF2 with HMAC-SHA-256, and a
// MAC with HMAC-SHA-256, each of 2048 rounds. OpenSSL from 1.1.1 and Java from 12, 11.0.12 and 8u301
// read it. The newer profile with PBMAC1 (RFC 9579) needs OpenSSL 3.4 and Java 26.
func encodeArchive(key any, leaf *x509.Certificate, others []*x509.Certificate, password string) (string, error) {
	if err := checkPassword(password); err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", newError("the private key cannot be written as PKCS#8")
	}
	salts, err := salts(password, append(raw(append([]*x509.Certificate{leaf}, others...)), der))
	if err != nil {
		return "", err
	}
	archive, err := pkcs12.Modern2023.WithRand(salts).Encode(key, leaf, others, password)
	if err != nil {
		return "", orRefusal(err, newError("the archive cannot be written from this certificate, key and password"))
	}
	return base64.StdEncoding.EncodeToString(archive), nil
}

// pemTruststoreToPKCS12 is pemTruststoreToPKCS12Pass with an empty password.
func pemTruststoreToPKCS12(certs string) (string, error) {
	return pemTruststoreToPKCS12Pass(certs, "")
}

// pemTruststoreToPKCS12Pass returns a PKCS#12 archive of certificates that Java trusts, in base64, with the
// encryption of encodeArchive. Java keeps only one certificate for each alias, so each certificate gets a unique
// alias, made from its subject. Duplicate certificates are removed.
func pemTruststoreToPKCS12Pass(certs, password string) (string, error) {
	all, err := certificates(certs)
	if err != nil {
		return "", err
	}
	if err := checkPassword(password); err != nil {
		return "", err
	}
	all = distinct(all)
	salts, err := salts(password, raw(all))
	if err != nil {
		return "", err
	}
	archive, err := pkcs12.Modern2023.WithRand(salts).EncodeTrustStoreEntries(entries(all), password)
	if err != nil {
		return "", orRefusal(err, newError("the trust store cannot be written from these certificates and this password"))
	}
	return base64.StdEncoding.EncodeToString(archive), nil
}

// maxAlias limits an alias in characters, before the number that can follow it.
const maxAlias = 128

// entries gives each certificate a unique alias. Java ignores the case of aliases.
func entries(certs []*x509.Certificate) []pkcs12.TrustStoreEntry {
	used, count := map[string]bool{}, map[string]int{}
	out := make([]pkcs12.TrustStoreEntry, 0, len(certs))
	for _, c := range certs {
		base := alias(c)
		name, folded := base, strings.ToLower(base)
		for used[strings.ToLower(name)] {
			count[folded]++
			name = fmt.Sprintf("%s (%d)", base, count[folded]+1)
		}
		used[strings.ToLower(name)] = true
		out = append(out, pkcs12.TrustStoreEntry{Cert: c, FriendlyName: name})
	}
	return out
}

// alias returns the subject of a certificate, in characters that a friendly name can have: a BMPString has none above
// U+FFFF (RFC 2985, section 5.5.1).
func alias(c *x509.Certificate) string {
	var out []rune
	for _, r := range c.Subject.String() {
		if len(out) == maxAlias {
			break
		}
		if r > 0xffff {
			r = utf8.RuneError
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return "certificate"
	}
	return string(out)
}

// checkPassword refuses passwords from which tools derive different keys: a PKCS#12 password is a BMPString, which
// cannot contain arbitrary bytes or characters above U+FFFF (RFC 7292, appendix B.1).
func checkPassword(password string) error {
	if err := checkSize(password); err != nil {
		return err
	}
	if !utf8.ValidString(password) {
		return newError("the password of the archive is not UTF-8 text; encode it first, for example with b64enc")
	}
	for _, r := range password {
		if r > 0xffff {
			return newError("the password of the archive has a character that PKCS#12 cannot store, for example an emoji; use letters and digits")
		}
	}
	return nil
}

// salts returns the random bytes for the encoder: salts and initialisation vectors. They are derived from the whole
// content of the archive. So a template makes the same archive as long as nothing has changed, and a refresh without
// a change writes nothing. Different contents still have different salts. The derivation is as slow as that of the
// archive's own keys. Otherwise the salts, which are visible, would be a faster way to try passwords.
func salts(password string, contents [][]byte) (*bytes.Reader, error) {
	h := sha256.New()
	for _, c := range contents {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(c))))
		h.Write(c)
	}
	seed, err := pbkdf2.Key(sha256.New, password, h.Sum(nil), 2048, sha256.Size)
	if err != nil {
		return nil, orRefusal(err, newError("the archive cannot be written: PBKDF2 is not available"))
	}
	stream, err := hkdf.Expand(sha256.New, seed, "salts of a PKCS#12 archive", 256)
	if err != nil {
		return nil, newError("the archive cannot be written: HKDF is not available")
	}
	return bytes.NewReader(stream), nil
}

func raw(certs []*x509.Certificate) [][]byte {
	out := make([][]byte, 0, len(certs)+1)
	for _, c := range certs {
		out = append(out, c.Raw)
	}
	return out
}
