package provider

import (
	"crypto/tls"
	"crypto/x509"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

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
