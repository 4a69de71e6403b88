// Package cryptofuncs has the template functions that convert certificates, keys and PKCS#12 archives.
//
// Names, order of arguments and results are those of the template engine v2 of External Secrets Operator, so that its
// templates work here. If a function refuses something that the other engine accepts silently, its comment says so.
//
// The functions are pure: they read no file, clock or network. The same arguments give the same result, including the
// salts of an archive. Values from a provider are hostile input. So each function refuses arguments of more than 1
// MiB, and limits the work that a small argument can ask for. Each call ends within a second.
package cryptofuncs

const (
	// maxInput limits an argument, in bytes. It is the size of a Kubernetes Secret.
	maxInput = 1 << 20
	// maxCertificates limits the certificates in one argument. The bundles of browsers have about 150.
	maxCertificates = 1000
	// maxKey limits a private key, in bytes of DER. An RSA key of maxModulus has 4.7 KB.
	maxKey = 8 << 10
	// maxModulus limits an RSA key, in bits. A private operation with such a key takes a tenth of a second; the time
	// grows with the third power of the size.
	maxModulus = 8192
	// maxKDF limits the work of the password-based key derivations of one archive, in the units of type budget. It is
	// enough for an archive whose MAC, certificates and key need 600,000 rounds of SHA-256 each: sixty times the
	// default of Java and three hundred times that of OpenSSL.
	maxKDF = 3_200_000
)

// Functions returns the functions by their names in templates:
//
//	pkcs12key ARCHIVE                      the private keys as PKCS#8 PEM
//	pkcs12keyPass PASSWORD ARCHIVE
//	pkcs12cert ARCHIVE                     the certificates as PEM: leaf, intermediates, root
//	pkcs12certPass PASSWORD ARCHIVE
//	pemToPkcs12 CERTIFICATE KEY            an archive of one certificate and its key, in base64
//	pemToPkcs12Pass CERTIFICATE KEY PASSWORD
//	fullPemToPkcs12 CERTIFICATES KEY       an archive of a chain and its key, in base64
//	fullPemToPkcs12Pass CERTIFICATES KEY PASSWORD
//	pemTruststoreToPKCS12 CERTIFICATES     a Java trust store, in base64
//	pemTruststoreToPKCS12Pass CERTIFICATES PASSWORD
//	filterPEM TYPE PEM                     the blocks of one type
//	filterCertChain leaf|intermediate|root PEM
//	certSANs PEM                           the list of the alternative names of the first certificate
//	jwkPublicKeyPem JWK                    a PUBLIC KEY block
//	jwkPrivateKeyPem JWK                   a PRIVATE KEY block, PKCS#8
//	rsaDecrypt SCHEME HASH CIPHERTEXT KEY  the plain text
//
// An ARCHIVE is the bytes of a PKCS#12 file, not base64. Every error is an *Error.
func Functions() map[string]any {
	return map[string]any{
		"pkcs12key":                 pkcs12key,
		"pkcs12keyPass":             pkcs12keyPass,
		"pkcs12cert":                pkcs12cert,
		"pkcs12certPass":            pkcs12certPass,
		"pemToPkcs12":               pemToPkcs12,
		"pemToPkcs12Pass":           pemToPkcs12Pass,
		"fullPemToPkcs12":           fullPemToPkcs12,
		"fullPemToPkcs12Pass":       fullPemToPkcs12Pass,
		"pemTruststoreToPKCS12":     pemTruststoreToPKCS12,
		"pemTruststoreToPKCS12Pass": pemTruststoreToPKCS12Pass,
		"filterPEM":                 filterPEM,
		"filterCertChain":           filterCertChain,
		"certSANs":                  certSANs,
		"jwkPublicKeyPem":           jwkPublicKeyPem,
		"jwkPrivateKeyPem":          jwkPrivateKeyPem,
		"rsaDecrypt":                rsaDecrypt,
	}
}

// checkSize returns an Error if an argument is larger than maxInput.
func checkSize(args ...string) error {
	for _, a := range args {
		if len(a) > maxInput {
			return newError("an argument has %d bytes, at most %d are allowed; split it at its source", len(a), maxInput)
		}
	}
	return nil
}
