package provider_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/google/go-cmp/cmp"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

func TestCertificateFaultOf(t *testing.T) {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"a.example"}, NotAfter: time.Now()}
	noNames := &x509.Certificate{Subject: pkix.Name{CommonName: "server.example"}, Raw: []byte{0}}
	verifying := func(err error) error {
		return &url.Error{Op: "Get", Err: &tls.CertificateVerificationError{UnverifiedCertificates: []*x509.Certificate{leaf}, Err: err}}
	}
	cases := map[string]struct {
		reason string
		err    error
		want   provider.CertificateFault
	}{
		"None":      {"Without an error there is no fault.", nil, ""},
		"Other":     {"Other errors have no fault.", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, ""},
		"Untrusted": {"The authority is unknown.", verifying(x509.UnknownAuthorityError{Cert: leaf}), provider.CertificateUntrusted},
		"Name":      {"The certificate has another name.", verifying(x509.HostnameError{Certificate: leaf, Host: "b.example"}), provider.CertificateOtherName},
		"Address":   {"The certificate does not have the address.", verifying(x509.HostnameError{Certificate: leaf, Host: "127.0.0.1"}), provider.CertificateOtherName},
		"NoNames":   {"The certificate has no names.", verifying(x509.HostnameError{Certificate: noNames, Host: "b.example"}), provider.CertificateOtherName},
		"Expired":   {"The certificate has expired.", verifying(x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired}), provider.CertificateExpired},
		"NoServer":  {"Any other problem of the certificate is CertificateBad.", verifying(x509.CertificateInvalidError{Cert: leaf, Reason: x509.IncompatibleUsage}), provider.CertificateBad},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, provider.CertificateFaultOf(tc.err)); diff != "" {
				t.Errorf("%s\nCertificateFaultOf(...): -want, +got:\n%s", tc.reason, diff)
			}
			if tc.err == nil {
				return
			}
			// gRPC keeps only the text of the error.
			if diff := cmp.Diff(tc.want, provider.CertificateFaultOf(errors.New("connection error: "+tc.err.Error()))); diff != "" {
				t.Errorf("%s\nCertificateFaultOf(the text of the error): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestServerTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	own := x509.NewCertPool()
	own.AppendCertsFromPEM(authority)
	cases := map[string]struct {
		reason  string
		bundle  []byte
		want    *x509.CertPool
		wantErr string
	}{
		"None":  {"Without authorities, those of the system count.", nil, nil, ""},
		"Own":   {"Only the authorities of the spec count.", authority, own, ""},
		"NoPEM": {"Authorities that cannot be read are refused.", []byte("x"), nil, "spec.caBundle: has no certificate in PEM form"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := provider.ServerTLS(t.Context(), nil, "spec", v1alpha1.Authorities{CABundle: tc.bundle})
			if tc.wantErr != "" {
				if provider.ClassOf(err) != provider.Invalid || !strings.HasPrefix(err.Error(), tc.wantErr) {
					t.Errorf("%s\nServerTLS(...): want %q, got %v", tc.reason, tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.MinVersion != tls.VersionTLS12 || !c.RootCAs.Equal(tc.want) {
				t.Errorf("%s\nServerTLS(...): got other authorities, or version %#x", tc.reason, c.MinVersion)
			}
		})
	}
}

// TestArchivePEM reads archives of a key and a certificate.
func TestArchivePEM(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	archive := func(password string) []byte {
		raw, err := pkcs12.Modern2023.Encode(key, certificate, nil, password)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	cases := map[string]struct {
		reason  string
		archive []byte
		want    []string // types of the blocks
	}{
		"Open":   {"The key comes before the certificate.", archive(""), []string{"PRIVATE KEY", "CERTIFICATE"}},
		"Locked": {"An archive with a password is refused.", archive("hunter2"), nil},
		"Other":  {"A text is refused.", []byte("hunter2"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := provider.ArchivePEM(tc.archive)
			if tc.want == nil && (provider.ClassOf(err) != provider.Invalid || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}
			var got []string
			for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
				got = append(got, block.Type)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
