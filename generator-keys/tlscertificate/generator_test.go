package tlscertificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

type settings = v1alpha1.TLSCertificateSettings

// connectBoth connects the namespaced Kind and the cluster Kind, which must agree.
func connectBoth(t testing.TB, s settings, creds provider.Credentials) (provider.Generator, error) {
	t.Helper()
	own, shared := &v1alpha1.TLSCertificate{}, &v1alpha1.ClusterTLSCertificate{}
	own.Spec.TLSCertificateSettings, shared.Spec.TLSCertificateSettings = s, s
	g, err := Connect(t.Context(), own, creds)
	_, errShared := Connect(t.Context(), shared, creds)
	if diff := cmp.Diff(err, errShared); diff != "" {
		t.Errorf("Connect(...): -TLSCertificate, +ClusterTLSCertificate:\n%s", diff)
	}
	return g, err
}

func generate(t testing.TB, g provider.Generator) provider.Generated {
	t.Helper()
	made, err := g.Generate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// certificatesOf reads PEM certificates.
func certificatesOf(t testing.TB, text []byte) (all []*x509.Certificate) {
	t.Helper()
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// TestVerifies checks with Go that certificates are a pair with their key, and valid for their names and usages.
func TestVerifies(t *testing.T) {
	root := newCA(t, "root", nil, nil)
	middle := newCA(t, "middle", root, nil)
	names := settings{
		CommonName: "shop", DNSNames: []string{"shop.example.com", "*.shop.example.com"}, IPAddresses: []string{"192.0.2.1", "2001:db8::1"},
		URIs: []string{"spiffe://example.org/shop"}, Usages: []v1alpha1.Usage{"server auth", "client auth"},
	}
	key := func(of v1alpha1.KeyType, size int32) settings {
		s := names
		s.KeyType, s.KeySize = of, size
		return s
	}
	cases := map[string]struct {
		reason   string
		settings settings
		data     map[string][]byte // of the authority
		key      string
		chain    int // number of certificates in tls.crt
	}{
		"SelfSigned": {"Without an authority the certificate is its own.", names, nil, "ecdsa 256", 1},
		"RSA":        {"The key can be RSA.", key("rsa", 2048), secretOf(t, root), "rsa 2048", 1},
		"ECDSA":      {"The key can have another curve.", key("ecdsa", 384), nil, "ecdsa 384", 1},
		"Ed25519":    {"The key can be Ed25519.", key("ed25519", 0), secretOf(t, root), "ed25519", 1},
		"Signed":     {"An authority signs the certificate.", names, secretOf(t, root), "ecdsa 256", 1},
		"Chain":      {"The certificate comes with those between it and the root.", names, secretOf(t, middle, root), "ecdsa 256", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.data != nil {
				tc.settings.CASecretRef = &v1alpha1.CASecretReference{Name: "ca"}
			}
			g, err := connectBoth(t, tc.settings, secret{data: tc.data})
			if err != nil {
				t.Fatal(err)
			}
			made := generate(t, g)
			pair, err := tls.X509KeyPair(made.Values["tls.crt"], made.Values["tls.key"])
			if err != nil {
				t.Fatalf("%s\ntls.crt and tls.key: %v", tc.reason, err)
			}
			all, roots := certificatesOf(t, made.Values["tls.crt"]), x509.NewCertPool()
			if len(all) != tc.chain || !roots.AppendCertsFromPEM(made.Values["ca.crt"]) {
				t.Fatalf("%s\n%d certificates, want %d", tc.reason, len(all), tc.chain)
			}
			if tc.data != nil {
				if diff := cmp.Diff(root.certificate.Raw, certificatesOf(t, made.Values["ca.crt"])[0].Raw); diff != "" {
					t.Errorf("%s\nca.crt is not the root.", tc.reason)
				}
			}
			checkUses(t, tc.reason, roots, all)
			leaf := all[0]
			if leaf.IsCA || leaf.Subject.CommonName != "shop" || fmt.Sprint(leaf.URIs) != "[spiffe://example.org/shop]" || !made.Expires.Equal(leaf.NotAfter) {
				t.Errorf("%s\nauthority %t, subject %s, URIs %v, expiry %s", tc.reason, leaf.IsCA, leaf.Subject, leaf.URIs, made.Expires)
			}
			if got := describe(pair.PrivateKey); got != tc.key {
				t.Errorf("%s\nThe key is %s, want %s.", tc.reason, got, tc.key)
			}
			again := certificatesOf(t, generate(t, g).Values["tls.crt"])[0]
			if again.SerialNumber.Cmp(leaf.SerialNumber) == 0 || leaf.SerialNumber.Sign() <= 0 || string(again.RawSubjectPublicKeyInfo) == string(leaf.RawSubjectPublicKeyInfo) {
				t.Errorf("%s\nThe next certificate has the same serial number or key.", tc.reason)
			}
		})
	}
}

// checkUses verifies the first certificate for its names and usages, and for no others.
func checkUses(t *testing.T, reason string, roots *x509.CertPool, all []*x509.Certificate) {
	t.Helper()
	others := x509.NewCertPool()
	for _, c := range all[1:] {
		others.AddCert(c)
	}
	leaf := all[0]
	verify := func(name string, usage x509.ExtKeyUsage) error {
		_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: others, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	for _, name := range []string{"shop.example.com", "a.shop.example.com", "192.0.2.1", "[2001:db8::1]"} {
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if err := verify(name, usage); err != nil {
				t.Errorf("%s\n%s: %v", reason, name, err)
			}
		}
	}
	if verify("other.example.com", x509.ExtKeyUsageServerAuth) == nil || verify("shop.example.com", x509.ExtKeyUsageCodeSigning) == nil {
		t.Errorf("%s\nThe certificate is valid for another name or usage.", reason)
	}
}

func describe(key any) string {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return fmt.Sprintf("rsa %d", k.N.BitLen())
	case *ecdsa.PrivateKey:
		return fmt.Sprintf("ecdsa %d", k.Params().BitSize)
	case ed25519.PrivateKey:
		return "ed25519"
	}
	return fmt.Sprintf("%T", key)
}

// TestTimes checks with a simulated clock when certificates expire, and when they are replaced.
func TestTimes(t *testing.T) {
	cases := map[string]struct {
		reason           string
		settings         settings
		expires, replace time.Duration // replace is 0 for the default
	}{
		"Default":     {"A certificate is valid for 90 days, and is replaced after two thirds of them.", settings{}, 2160 * time.Hour, 0},
		"RenewBefore": {"A certificate is replaced renewBefore its end.", settings{RenewBefore: "720h"}, 2160 * time.Hour, 1440 * time.Hour},
		"Short":       {"The shortest certificate.", settings{Duration: "1m", RenewBefore: "1s"}, time.Minute, 59 * time.Second},
		"Long":        {"The longest certificate.", settings{Duration: "87600h", RenewBefore: "87599h"}, 87600 * time.Hour, time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.settings.DNSNames = []string{"shop.example.com"}
				g, err := connectBoth(t, tc.settings, nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 3 { // Each certificate counts from the time of its creation.
					made := generate(t, g)
					leaf := certificatesOf(t, made.Values["tls.crt"])[0]
					if got := time.Until(leaf.NotAfter); got != tc.expires || !leaf.NotAfter.Equal(made.Expires) {
						t.Errorf("%s\nIt expires in %s, want %s.", tc.reason, got, tc.expires)
					}
					if leaf.NotBefore.After(time.Now()) {
						t.Errorf("%s\nIt is not valid before %s.", tc.reason, leaf.NotBefore)
					}
					next := tc.replace
					if made.Replace.IsZero() != (next == 0) || next != 0 && time.Until(made.Replace) != next {
						t.Errorf("%s\nIt is replaced at %s, want after %s.", tc.reason, made.Replace, next)
					}
					time.Sleep(max(next, time.Hour))
				}
			})
		})
	}
}

func TestConnectFails(t *testing.T) {
	names := []string{"shop.example.com"}
	cases := map[string]struct {
		reason   string
		settings settings
		want     string
	}{
		"Names":      {"A certificate has a name.", settings{}, "spec.dnsNames: the certificate has no name; set spec.dnsNames, spec.ipAddresses, spec.uris or spec.commonName"},
		"CommonName": {"A control character is refused.", settings{CommonName: "a\nb"}, "spec.commonName: must be up to 64 characters without control characters"},
		"DNSName":    {"A DNS name has no spaces.", settings{DNSNames: []string{"a", "a b"}}, `spec.dnsNames[1]: "a b" is not a DNS name; write it as shop.example.com or *.example.com`},
		"Wildcard":   {"Only the first label can be a wildcard.", settings{DNSNames: []string{"a.*.b"}}, `spec.dnsNames[0]: "a.*.b" is not a DNS name; write it as shop.example.com or *.example.com`},
		"IPv4Name":   {"A client looks for an IP address in ipAddresses only.", settings{DNSNames: []string{"a", "10.0.0.1"}}, `spec.dnsNames[1]: "10.0.0.1" is an IP address, for which clients ignore DNS names; move it to spec.ipAddresses`},
		"IPv6Name":   {"The same is true for the longer addresses.", settings{DNSNames: []string{"2001:db8::1"}}, `spec.dnsNames[0]: "2001:db8::1" is an IP address, for which clients ignore DNS names; move it to spec.ipAddresses`},
		"IP":         {"A name is no IP address.", settings{IPAddresses: []string{"localhost"}}, `spec.ipAddresses[0]: "localhost" is not an IP address; write it as 192.0.2.1 or 2001:db8::1`},
		"Zone":       {"A certificate has no zones.", settings{IPAddresses: []string{"fe80::1%eth0"}}, `spec.ipAddresses[0]: "fe80::1%eth0" is not an IP address; write it as 192.0.2.1 or 2001:db8::1`},
		"URI":        {"A path is no URI.", settings{URIs: []string{"/shop"}}, `spec.uris[0]: "/shop" is not a URI with a scheme and a host; write it as spiffe://example.org/shop`},
		"Usage":      {"The error names the usages.", settings{DNSNames: names, Usages: []v1alpha1.Usage{"signing"}}, `spec.usages[0]: "signing" is unknown; use server auth, client auth, code signing or email protection`},
		"Duration":   {"The error of a duration names the format.", settings{DNSNames: names, Duration: "90d"}, `spec.duration: "90d" is not a duration; write it as 30s, 15m or 1h`},
		"Short":      {"A certificate is valid for a minute or more.", settings{DNSNames: names, Duration: "59s"}, "spec.duration: is 59s; set 1m to 87600h"},
		"Long":       {"A certificate is valid for ten years at most.", settings{DNSNames: names, Duration: "87601h"}, "spec.duration: is 87601h0m0s; set 1m to 87600h"},
		"Renew":      {"The error names the format.", settings{DNSNames: names, RenewBefore: "30d"}, `spec.renewBefore: "30d" is not a duration; write it as 30s, 15m or 1h`},
		"RenewZero":  {"A certificate is not replaced when it has expired.", settings{DNSNames: names, RenewBefore: "0"}, "spec.renewBefore: is 0s; set at least 1s, and less than spec.duration, which is 2160h0m0s"},
		"RenewLong":  {"A certificate would be replaced all the time.", settings{DNSNames: names, Duration: "1h", RenewBefore: "1h"}, "spec.renewBefore: is 1h0m0s; set at least 1s, and less than spec.duration, which is 1h0m0s"},
		"Key":        {"The key is checked, too.", settings{DNSNames: names, KeySettings: v1alpha1.KeySettings{KeyType: "dsa"}}, `spec.keyType: "dsa" is unknown; use rsa, ecdsa or ed25519`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := connectBoth(t, tc.settings, nil)
			if diff := cmp.Diff(provider.NewError(provider.Invalid, "%s", tc.want), err); diff != "" {
				t.Errorf("%s\nConnect(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	g, err := connectBoth(t, settings{CommonName: "a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	made, err := g.Generate(ctx)
	if provider.ClassOf(err) != provider.Unavailable || made.Values != nil {
		t.Errorf("a call that was cancelled has %d values and error %v", len(made.Values), err)
	}
}
