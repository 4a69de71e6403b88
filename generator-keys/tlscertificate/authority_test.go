package tlscertificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
)

// secret holds the keys of the Secret with the authority. Other methods of Credentials are not called.
type secret struct {
	provider.Credentials
	data map[string][]byte
}

func (s secret) SecretValue(_ context.Context, sel common.SecretKeySelector) ([]byte, error) {
	if len(s.data[sel.Key]) == 0 {
		return nil, provider.NewError(provider.Invalid, "auth: Secret shop/%s has no value under key %q; add it or correct the reference", sel.Name, sel.Key)
	}
	return s.data[sel.Key], nil
}

// signed is a certificate with its key.
type signed struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newCA returns an authority that parent signs, or that is self-signed without parent.
func newCA(t testing.TB, name string, parent *signed, change func(*x509.Certificate)) *signed {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour),
	}
	if change != nil {
		change(c)
	}
	signer := &signed{c, key}
	if parent != nil {
		signer = parent
	}
	der, err := x509.CreateCertificate(rand.Reader, c, signer.certificate, key.Public(), signer.key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return &signed{c, key}
}

// secretOf returns the Secret of an authority, with the certificates of higher ones.
func secretOf(t testing.TB, ca *signed, above ...*signed) map[string][]byte {
	t.Helper()
	key, err := x509.MarshalECPrivateKey(ca.key)
	if err != nil {
		t.Fatal(err)
	}
	certificates := []*x509.Certificate{ca.certificate}
	for _, a := range above {
		certificates = append(certificates, a.certificate)
	}
	return map[string][]byte{"tls.crt": encode(certificates...), "tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})}
}

// TestAuthorityFails checks the errors of authorities, when the generator is connected or when it generates.
func TestAuthorityFails(t *testing.T) {
	root := newCA(t, "root", nil, nil)
	other := newCA(t, "other", nil, nil)
	expires := time.Now().Add(-time.Minute)
	starts := time.Now().Add(time.Hour)
	with := func(change func(*x509.Certificate)) map[string][]byte {
		return secretOf(t, newCA(t, "changed", nil, change))
	}
	mixed := secretOf(t, root)
	mixed["tls.key"] = secretOf(t, other)["tls.key"]
	stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	cases := map[string]struct {
		reason string
		data   map[string][]byte
		want   string
	}{
		"Missing":     {"The error of a missing key names the field.", nil, `Secret shop/ca has no value under key "tls.crt"; add it or correct the reference`},
		"NoKey":       {"The private key is required.", map[string][]byte{"tls.crt": []byte("x")}, `Secret shop/ca has no value under key "tls.key"; add it or correct the reference`},
		"Garbage":     {"Both keys are PEM.", map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("c4n4ry")}, "tls.crt and tls.key of Secret ca cannot be read; store a PEM certificate and its unencrypted PEM key"},
		"OtherKey":    {"The key is that of the certificate.", mixed, "tls.key of Secret ca is not the key of the first certificate in tls.crt; correct one of them"},
		"NoAuthority": {"A certificate of a server is no authority.", with(func(c *x509.Certificate) { c.IsCA = false; c.KeyUsage = x509.KeyUsageDigitalSignature }), "certificate 1 in tls.crt of Secret ca is not an authority; use one with CA:TRUE and the key usage certificate sign"},
		"NoSigning":   {"The authority is allowed to sign.", with(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }), "certificate 1 in tls.crt of Secret ca is not an authority; use one with CA:TRUE and the key usage certificate sign"},
		"Expired":     {"The authority has not expired.", with(func(c *x509.Certificate) { c.NotAfter = expires }), "certificate 1 in tls.crt expired at " + stamp(expires) + "; renew the authority"},
		"Later":       {"The authority is valid already.", with(func(c *x509.Certificate) { c.NotBefore = starts }), "certificate 1 in tls.crt is not valid before " + stamp(starts) + "; use another authority, or wait"},
		"Order":       {"Each certificate is signed by the next.", secretOf(t, root, other), "certificate 1 in tls.crt of Secret ca is not signed by the next; correct the order"},
		"Names":       {"The authority permits the names.", with(func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example.org"} }), "the authority does not permit this certificate; check its name constraints, usages and path length against spec.dnsNames, spec.ipAddresses, spec.uris and spec.usages"},
		"Usages":      {"The authority permits the usages.", with(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), "the authority does not permit this certificate; check its name constraints, usages and path length against spec.dnsNames, spec.ipAddresses, spec.uris and spec.usages"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := settings{DNSNames: []string{"shop.example.com"}, CASecretRef: &v1alpha1.CASecretReference{Name: "ca"}}
			g, err := connectBoth(t, s, secret{data: tc.data})
			if err == nil {
				_, err = g.Generate(t.Context())
			}
			if diff := cmp.Diff(provider.NewError(provider.Invalid, "%s", caField+tc.want), err); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAuthorityExpires connects a generator, whose authority expires later.
func TestAuthorityExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := secretOf(t, newCA(t, "short", nil, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(10 * time.Hour) }))
		s := settings{DNSNames: []string{"shop.example.com"}, Duration: "24h", RenewBefore: "8h", CASecretRef: &v1alpha1.CASecretReference{Name: "ca"}}
		g, err := connectBoth(t, s, secret{data: data})
		if err != nil {
			t.Fatal(err)
		}
		made := generate(t, g)
		if left := time.Until(made.Expires); left != 10*time.Hour {
			t.Errorf("the certificate expires in %s, want 10h with its authority", left)
		}
		if at := time.Until(made.Replace); at != 2*time.Hour {
			t.Errorf("the certificate is replaced in %s, want 2h", at)
		}
		time.Sleep(11 * time.Hour)
		if _, err := g.Generate(t.Context()); provider.ClassOf(err) != provider.Invalid {
			t.Errorf("an authority that has expired since: error %v", err)
		}
	})
}
