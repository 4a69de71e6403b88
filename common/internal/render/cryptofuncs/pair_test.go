package cryptofuncs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"software.sslmate.com/src/go-pkcs12"
)

// A family has certificates and keys by name: leaf, issuer, root, a cross-signed issuer, its root, and an unrelated root.
type family struct {
	certs map[string]*x509.Certificate
	keys  map[string]*ecdsa.PrivateKey
}

func newFamily(t *testing.T) family {
	t.Helper()
	f := family{map[string]*x509.Certificate{}, map[string]*ecdsa.PrivateKey{}}
	for _, name := range []string{"root", "issuer", "leaf", "other", "extra"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		f.keys[name] = key
	}
	f.issue(t, "root", "root", "root")
	f.issue(t, "other", "other", "other")
	f.issue(t, "extra", "extra", "extra")
	f.issue(t, "issuer", "issuer", "root")
	f.issue(t, "cross", "issuer", "other")
	f.issue(t, "leaf", "leaf", "issuer")
	return f
}

// issue adds a certificate of a subject by an issuer.
func (f family) issue(t *testing.T, name, subject, by string) {
	t.Helper()
	form := func(of string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(int64(len(f.certs) + 1)), Subject: pkix.Name{CommonName: of}, IsCA: of != "leaf", BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, form(subject), form(by), f.keys[subject].Public(), f.keys[by])
	if err != nil {
		t.Fatal(err)
	}
	if f.certs[name], err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
}

// names returns the names of certificates in their order.
func (f family) names(certs []*x509.Certificate) (names []string) {
	for _, c := range certs {
		for name, own := range f.certs {
			if own.Equal(c) {
				names = append(names, name)
			}
		}
	}
	return names
}

// orders returns all orders of texts.
func orders(of []string) (all [][]string) {
	if len(of) == 0 {
		return [][]string{nil}
	}
	for i := range of {
		rest := append(append([]string{}, of[:i]...), of[i+1:]...)
		for _, o := range orders(rest) {
			all = append(all, append([]string{of[i]}, o...))
		}
	}
	return all
}

// TestLeafFirst orders certificates that have each order, by their key and without it, and in archives.
func TestLeafFirst(t *testing.T) {
	cases := map[string]struct {
		reason string
		certs  []string
		key    string
		start  string // the first names of the result
		alone  string // the first name without the key, if it is clear
		err    string
	}{
		"Chain":  {"One chain is ordered.", []string{"leaf", "issuer", "root"}, "leaf", "leaf issuer root", "leaf", ""},
		"Extra":  {"Another root comes last.", []string{"leaf", "issuer", "root", "extra"}, "leaf", "leaf issuer root extra", "leaf", ""},
		"Cross":  {"A cross-signed authority has two certificates.", []string{"leaf", "issuer", "cross", "root"}, "leaf", "leaf ", "leaf", ""},
		"Gap":    {"A chain with a gap begins with the leaf.", []string{"leaf", "root"}, "leaf", "leaf root", "leaf", ""},
		"Own":    {"The key of an authority has the certificate of the authority.", []string{"leaf", "issuer", "root"}, "issuer", "issuer root leaf", "leaf", ""},
		"NoPair": {"A key that matches none of the certificates is an error.", []string{"leaf", "issuer"}, "extra", "", "leaf", "the private key matches none of the certificates"},
		"Roots":  {"Of two roots none is a leaf.", []string{"root", "extra"}, "root", "root extra", "", ""},
	}
	f := newFamily(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, order := range orders(tc.certs) {
				var certs []*x509.Certificate
				for _, c := range order {
					certs = append(certs, f.certs[c])
				}
				ordered, err := LeafFirst(certs, f.keys[tc.key])
				checkPair(t, tc.reason, order, f.names(ordered), err, tc.start, tc.err)
				checkPair(t, tc.reason+" So it is in an archive.", order, f.names(archived(t, f, certs, tc.key)), nil, tc.start, "")
				if alone, err := LeafFirst(certs, nil); err != nil || tc.alone != "" && f.names(alone)[0] != tc.alone || tc.alone == "" && alone[0] != certs[0] {
					t.Errorf("%s\nWithout the key %q becomes %q: %v", tc.reason, order, f.names(alone), err)
				}
			}
		})
	}
}

func checkPair(t *testing.T, reason string, order, got []string, err error, start, part string) {
	t.Helper()
	if part != "" {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s\nerror %v, want %q", reason, err, part)
		}
		return
	}
	if err != nil || len(got) != len(order) && start != "" || !strings.HasPrefix(strings.Join(got, " "), start) {
		t.Errorf("%s\n%q becomes %q, want %q first: %v", reason, order, got, start, err)
	}
}

// archived returns the certificates that pkcs12cert reads from an archive; none if it fails.
func archived(t *testing.T, f family, certs []*x509.Certificate, key string) []*x509.Certificate {
	t.Helper()
	raw, err := pkcs12.Passwordless.Encode(f.keys[key], certs[0], certs[1:], "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := pkcs12cert(string(raw))
	if err != nil {
		return nil
	}
	all, err := certificates(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestArchiveWithoutPair reads an archive whose key matches none of its certificates: an error that says so.
func TestArchiveWithoutPair(t *testing.T) {
	f := newFamily(t)
	raw, err := pkcs12.Passwordless.Encode(f.keys["extra"], f.certs["leaf"], nil, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = pkcs12cert(string(raw))
	if diff := cmp.Diff(true, err != nil && strings.Contains(err.Error(), "the private key matches none of the certificates")); diff != "" {
		t.Errorf("pkcs12cert(...): %v, -want, +got:\n%s", err, diff)
	}
}

// TestPairPEM orders the certificates of a client, and refuses a key of another certificate.
func TestPairPEM(t *testing.T) {
	f := newFamily(t)
	key := func(name string) string {
		der, err := x509.MarshalPKCS8PrivateKey(f.keys[name])
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: privateKeyType, Bytes: der}))
	}
	certs := encodeCertificates([]*x509.Certificate{f.certs["extra"], f.certs["root"], f.certs["leaf"], f.certs["issuer"]})
	want := encodeCertificates([]*x509.Certificate{f.certs["leaf"], f.certs["issuer"], f.certs["root"], f.certs["extra"]})
	got, err := PairPEM(certs, key("leaf"))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("PairPEM(...): %v, -want, +got:\n%s", err, diff)
	}
	if _, err := PairPEM(certs, key("other")); err == nil || !strings.Contains(err.Error(), "matches none of the certificates") {
		t.Errorf("A key of another certificate: %v", err)
	}
}
