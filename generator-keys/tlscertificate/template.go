package tlscertificate

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

const (
	defaultDuration = 90 * 24 * time.Hour
	minDuration     = time.Minute
	maxDuration     = 10 * 365 * 24 * time.Hour
	minRenewBefore  = time.Second
	// skew is how far the clock of a client can be behind that of the operator.
	skew = 5 * time.Minute
)

// template are valid settings.
type template struct {
	certificate x509.Certificate
	duration    time.Duration
	// renewBefore is 0 for the default.
	renewBefore time.Duration
}

func invalid(format string, args ...any) error {
	return provider.NewError(provider.Invalid, format, args...)
}

// newTemplate checks settings. Its errors are of class Invalid and name the field to fix.
func newTemplate(s *v1alpha1.TLSCertificateSettings) (template, error) {
	t := template{certificate: x509.Certificate{
		Subject:               pkix.Name{CommonName: s.CommonName},
		BasicConstraintsValid: true,
	}}
	if s.CommonName == "" && len(s.DNSNames) == 0 && len(s.IPAddresses) == 0 && len(s.URIs) == 0 {
		return t, invalid("spec.dnsNames: the certificate has no name; set spec.dnsNames, spec.ipAddresses, spec.uris or spec.commonName")
	}
	if len(s.CommonName) > 4*64 || strings.ContainsFunc(s.CommonName, unicode.IsControl) {
		return t, invalid("spec.commonName: must be up to 64 characters without control characters")
	}
	for _, set := range []func(*v1alpha1.TLSCertificateSettings) error{t.setNames, t.setUsages, t.setTimes} {
		if err := set(s); err != nil {
			return t, err
		}
	}
	return t, nil
}

// dnsName matches DNS names, also with a wildcard as the first label. It is the pattern of the CRD.
var dnsName = regexp.MustCompile(`^([*][.])?[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?([.][A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*$`)

func (t *template) setNames(s *v1alpha1.TLSCertificateSettings) error {
	for i, name := range s.DNSNames {
		if _, err := netip.ParseAddr(name); err == nil {
			return invalid("spec.dnsNames[%d]: %.80q is an IP address, for which clients ignore DNS names; move it to spec.ipAddresses", i, name)
		}
		if !dnsName.MatchString(name) || len(name) > 253 {
			return invalid("spec.dnsNames[%d]: %.80q is not a DNS name; write it as shop.example.com or *.example.com", i, name)
		}
	}
	t.certificate.DNSNames = s.DNSNames
	for i, text := range s.IPAddresses {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return invalid("spec.ipAddresses[%d]: %.80q is not an IP address; write it as 192.0.2.1 or 2001:db8::1", i, text)
		}
		t.certificate.IPAddresses = append(t.certificate.IPAddresses, net.IP(ip.AsSlice()))
	}
	for i, text := range s.URIs {
		u, err := url.Parse(text)
		ascii := !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
		if err != nil || u.Scheme == "" || u.Host == "" || !ascii {
			return invalid("spec.uris[%d]: %.80q is not a URI with a scheme and a host; write it as spiffe://example.org/shop", i, text)
		}
		t.certificate.URIs = append(t.certificate.URIs, u)
	}
	return nil
}

var usages = map[v1alpha1.Usage]x509.ExtKeyUsage{
	v1alpha1.UsageServerAuth:      x509.ExtKeyUsageServerAuth,
	v1alpha1.UsageClientAuth:      x509.ExtKeyUsageClientAuth,
	v1alpha1.UsageCodeSigning:     x509.ExtKeyUsageCodeSigning,
	v1alpha1.UsageEmailProtection: x509.ExtKeyUsageEmailProtection,
}

func (t *template) setUsages(s *v1alpha1.TLSCertificateSettings) error {
	wanted := s.Usages
	if len(wanted) == 0 {
		wanted = []v1alpha1.Usage{v1alpha1.UsageServerAuth}
	}
	for i, text := range wanted {
		usage, ok := usages[text]
		if !ok {
			return invalid("spec.usages[%d]: %.64q is unknown; use server auth, client auth, code signing or email protection", i, string(text))
		}
		t.certificate.ExtKeyUsage = append(t.certificate.ExtKeyUsage, usage)
	}
	return nil
}

func (t *template) setTimes(s *v1alpha1.TLSCertificateSettings) (err error) {
	if t.duration, err = s.Duration.Or(defaultDuration); err != nil {
		return invalid("spec.duration: %v", err)
	}
	if t.duration < minDuration || t.duration > maxDuration {
		return invalid("spec.duration: is %s; set 1m to 87600h", t.duration)
	}
	if t.renewBefore, err = s.RenewBefore.Or(0); err != nil {
		return invalid("spec.renewBefore: %v", err)
	}
	if s.RenewBefore != "" && t.renewBefore < minRenewBefore || t.renewBefore >= t.duration {
		return invalid("spec.renewBefore: is %s; set at least 1s, and less than spec.duration, which is %s", t.renewBefore, t.duration)
	}
	return nil
}

// at returns the certificate of a key, made at a time.
func (t *template) at(now time.Time, key crypto.Signer) *x509.Certificate {
	c := t.certificate
	c.NotBefore, c.NotAfter = now.Add(-skew), now.Add(t.duration)
	c.KeyUsage = x509.KeyUsageDigitalSignature
	if _, ok := key.(*rsa.PrivateKey); ok { // Clients of TLS 1.2 can encrypt to an RSA key.
		c.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	return &c
}

// replace returns when a certificate is replaced; zero for the default.
func (t *template) replace(expires time.Time) time.Time {
	if t.renewBefore == 0 {
		return time.Time{}
	}
	return expires.Add(-t.renewBefore)
}
