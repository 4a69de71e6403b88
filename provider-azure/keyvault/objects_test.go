package keyvault

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/security/keyvault/azkeys"
	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-azure/emulator"
)

var missing = strings.Repeat("e", 32)

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// issue returns the certificates of a leaf, its issuer and a root, and the private key of the leaf, each in PEM.
func issue(t testing.TB) (leaf, issuer, root, private string) {
	t.Helper()
	keys := []*ecdsa.PrivateKey{newKey(t), newKey(t), newKey(t)}
	names := []string{"root", "issuer", "leaf"}
	of := func(i int) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: names[i]}, IsCA: i < 2, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
	}
	var certs []string
	for i := range names {
		by := max(i-1, 0)
		der, err := x509.CreateCertificate(rand.Reader, of(i), of(by), keys[i].Public(), keys[by])
		if err != nil {
			t.Fatal(err)
		}
		certs = append(certs, block("CERTIFICATE", der))
	}
	der, err := x509.MarshalPKCS8PrivateKey(keys[2])
	if err != nil {
		t.Fatal(err)
	}
	return certs[2], certs[1], certs[0], block("PRIVATE KEY", der)
}

func certificate(t testing.TB, srv *emulator.Server, name string, c emulator.Certificate, opts ...emulator.PutOption) string {
	t.Helper()
	version, err := srv.PutCertificate(name, c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func publish(t testing.TB, srv *emulator.Server, name string, public crypto.PublicKey, opts ...emulator.PutOption) string {
	t.Helper()
	version, err := srv.PutKey(name, public, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// hasTag checks that the metadata of an object are its tags.
func hasTag(t *testing.T, c *Client, key string) {
	t.Helper()
	const reason = "The tags are the metadata."
	v, _ := read(t, c, reason, provider.Ref{Key: key, Metadata: true}, "", "")
	if diff := cmp.Diff(map[string]string{"team": "shop"}, v.Metadata); diff != "" {
		t.Errorf("%s\nmetadata: -want, +got:\n%s", reason, diff)
	}
}

func TestCertificates(t *testing.T) {
	leaf, issuer, root, private := issue(t)
	one, _, _, _ := issue(t)
	chain := leaf + issuer + root
	archive := []byte{0x30, 0x03, 0x02, 0x01, 0xff}
	der, _ := pem.Decode([]byte(leaf))
	all := map[string]provider.Further{
		"tls.crt": {Data: []byte(chain)}, "tls.key": {Data: []byte(private)}, "cer": {Data: der.Bytes},
	}
	withArchive := map[string]provider.Further{"keystore.p12": {Data: archive}}
	for name, f := range all {
		withArchive[name] = f
	}
	alone := map[string]provider.Further{
		"tls.crt": all["tls.crt"], "cer": all["cer"], "tls.key": {Refused: notExportable},
	}
	srv := start(t)
	old := certificate(t, srv, "web", emulator.Certificate{PEM: private + chain}, emulator.Tags(map[string]string{"team": "shop"}))
	certificate(t, srv, "web", emulator.Certificate{PEM: private + root + leaf + issuer, Archive: archive})
	for i, order := range [][]string{{one, leaf, issuer, root}, {root, leaf}, {one, root, issuer, leaf}} {
		certificate(t, srv, fmt.Sprint("order", i), emulator.Certificate{PEM: strings.Join(order, "") + private})
		certificate(t, srv, fmt.Sprint("archive", i), emulator.Certificate{PEM: private + strings.Join(order, ""), Archive: archive})
	}
	certificate(t, srv, "mixed", emulator.Certificate{PEM: private + one + root})
	certificate(t, srv, "apart", emulator.Certificate{PEM: leaf + one})
	certificate(t, srv, "public", emulator.Certificate{PEM: chain})
	certificate(t, srv, "public-archive", emulator.Certificate{PEM: chain, Archive: archive})
	certificate(t, srv, "disabled", emulator.Certificate{PEM: private + chain}, emulator.Disabled())
	certificate(t, srv, "expired", emulator.Certificate{PEM: private + chain}, emulator.Expires(time.Now().Add(-time.Hour)))
	certificate(t, srv, "early", emulator.Certificate{PEM: private + chain}, emulator.NotBefore(time.Now().Add(time.Hour)))
	certificate(t, srv, "empty", emulator.Certificate{PEM: private})
	certificate(t, srv, "broken", emulator.Certificate{PEM: private + block("CERTIFICATE", []byte("hunter2"))})
	certificate(t, srv, "other", emulator.Certificate{PEM: private + chain}, emulator.ContentType("text/plain"))
	put(t, srv, "plain", "hunter2")
	cases := map[string]struct {
		reason string
		ref    provider.Ref
		want   string
		more   map[string]provider.Further
		class  provider.Class
		part   string
	}{
		"Archive":       {"A PKCS#12 certificate is its chain from the leaf on, and has its archive.", provider.Ref{Key: "cert/web"}, chain, withArchive, "", ""},
		"Version":       {"A version stays readable. One that is stored as PEM has no archive.", provider.Ref{Key: "cert/web", Version: old}, chain, all, "", ""},
		"Apart":         {"Certificates that are not one chain keep their order.", provider.Ref{Key: "cert/apart"}, leaf + one, nil, "", ""},
		"Extra":         {"The certificate of the private key is first, and one of another chain last.", provider.Ref{Key: "cert/order0"}, chain + one, nil, "", ""},
		"ExtraArchive":  {"So it is in an archive.", provider.Ref{Key: "cert/archive0"}, chain + one, nil, "", ""},
		"Gap":           {"A chain with a gap begins with the leaf.", provider.Ref{Key: "cert/order1"}, leaf + root, nil, "", ""},
		"GapArchive":    {"So does one in an archive.", provider.Ref{Key: "cert/archive1"}, leaf + root, nil, "", ""},
		"Last":          {"The leaf can be stored last.", provider.Ref{Key: "cert/order2"}, chain + one, nil, "", ""},
		"LastArchive":   {"It can be the last one in an archive.", provider.Ref{Key: "cert/archive2"}, chain + one, nil, "", ""},
		"Mixed":         {"A private key of another certificate is an error.", provider.Ref{Key: "cert/mixed"}, "", nil, provider.Invalid, `certificate "cert/mixed": the private key matches none of the certificates`},
		"Public":        {"Without an exportable key the chain is read, and the key is refused with the fix.", provider.Ref{Key: "cert/public"}, chain, alone, "", ""},
		"PublicArchive": {"An archive without a private key is refused, too.", provider.Ref{Key: "cert/public-archive"}, chain, alone, "", ""},
		"Missing":       {"A missing certificate is NotFound.", provider.Ref{Key: "cert/none"}, "", nil, provider.NotFound, `certificate "cert/none": does not exist`},
		"NoVersion":     {"A missing version is NotFound.", provider.Ref{Key: "cert/web", Version: missing}, "", nil, provider.NotFound, "does not exist"},
		"VersionText":   {"A version that cannot exist is rejected.", provider.Ref{Key: "cert/web", Version: "1"}, "", nil, provider.Invalid, "is not the version of a certificate"},
		"Name":          {"A path is not a name.", provider.Ref{Key: "cert/a/b"}, "", nil, provider.Invalid, "is not the name of a certificate"},
		"Case":          {"The case of the name counts.", provider.Ref{Key: "cert/WEB"}, "", nil, provider.Invalid, `the certificate is named "web"; write the key so`},
		"Disabled":      {"A disabled certificate is not missing.", provider.Ref{Key: "cert/disabled"}, "", nil, provider.Invalid, "is disabled; enable it"},
		"Expired":       {"An expired certificate is not used, and not missing.", provider.Ref{Key: "cert/expired"}, "", nil, provider.Invalid, "has expired on "},
		"Early":         {"A certificate before its activation is not used.", provider.Ref{Key: "cert/early"}, "", nil, provider.Invalid, "is not valid before "},
		"Secret":        {"A secret is not a certificate, and its value is not returned.", provider.Ref{Key: "cert/plain"}, "", nil, provider.Invalid, "not part of a certificate; write the key without cert/"},
		"Empty":         {"A certificate without certificates is not an empty value.", provider.Ref{Key: "cert/empty"}, "", nil, provider.Invalid, "has no certificate in its secret"},
		"Broken":        {"A certificate that cannot be parsed is not used.", provider.Ref{Key: "cert/broken"}, "", nil, provider.Invalid, "cannot be parsed"},
		"ContentType":   {"An unknown content type is not guessed.", provider.Ref{Key: "cert/other"}, "", nil, provider.Invalid, "has an unknown content type"},
	}
	c := client(t, srv)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, ok := read(t, c, tc.reason, tc.ref, tc.class, tc.part)
			if diff := cmp.Diff(tc.want, string(v.Data)); ok && diff != "" {
				t.Errorf("%s\nGet(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.more, v.Further); ok && tc.more != nil && diff != "" {
				t.Errorf("%s\nproperties: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	hasTag(t, c, "cert/web")
}

// TestConvertedVersion stores a version while Key Vault is about to convert an archive. The result is of one version.
func TestConvertedVersion(t *testing.T) {
	leaf, _, _, private := issue(t)
	later, _, _, other := issue(t)
	var srv *emulator.Server
	srv = start(t, emulator.WithConversion(func() {
		if _, err := srv.PutCertificate("web", emulator.Certificate{PEM: other + later, Archive: []byte("new")}); err != nil {
			t.Error(err)
		}
	}))
	version := certificate(t, srv, "web", emulator.Certificate{PEM: private + leaf, Archive: []byte("old")})
	v, err := client(t, srv).Get(soon(t), provider.Ref{Key: "cert/web"})
	got := []string{v.Version, string(v.Data), string(v.Further["tls.key"].Data), string(v.Further["keystore.p12"].Data)}
	if diff := cmp.Diff([]string{version, leaf, private, "old"}, got); diff != "" || err != nil {
		t.Errorf("Get(...): %v, -want, +got:\n%s", err, diff)
	}
}

func TestKeys(t *testing.T) {
	hour := time.Hour
	ec, newer := newKey(t), newKey(t)
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	srv := start(t)
	first := publish(t, srv, "sign", ec.Public(), emulator.Tags(map[string]string{"team": "shop"}))
	publish(t, srv, "sign", newer.Public())
	publish(t, srv, "wrap", long.Public())
	publish(t, srv, "disabled", ec.Public(), emulator.Disabled())
	publish(t, srv, "expired", ec.Public(), emulator.Expires(time.Now().Add(-hour)))
	publish(t, srv, "early", ec.Public(), emulator.NotBefore(time.Now().Add(hour)))
	put(t, srv, "secret", "hunter2")
	cases := map[string]struct {
		reason string
		ref    provider.Ref
		kind   string
		want   crypto.PublicKey
		class  provider.Class
		part   string
	}{
		"EC":          {"Without a version the latest is read.", provider.Ref{Key: "key/sign"}, "EC-HSM", newer.Public(), "", ""},
		"Version":     {"A version stays readable.", provider.Ref{Key: "key/sign", Version: first}, "EC-HSM", ec.Public(), "", ""},
		"RSA":         {"An RSA key is read.", provider.Ref{Key: "key/wrap"}, "RSA", long.Public(), "", ""},
		"Missing":     {"A missing key is NotFound.", provider.Ref{Key: "key/none"}, "", nil, provider.NotFound, `key "key/none": does not exist`},
		"Secret":      {"A secret is not a key.", provider.Ref{Key: "key/secret"}, "", nil, provider.NotFound, "does not exist"},
		"NoVersion":   {"A missing version is NotFound.", provider.Ref{Key: "key/sign", Version: missing}, "", nil, provider.NotFound, "does not exist"},
		"VersionText": {"A version that cannot exist is rejected.", provider.Ref{Key: "key/sign", Version: "1"}, "", nil, provider.Invalid, "is not the version of a key"},
		"Name":        {"A path is not a name.", provider.Ref{Key: "key/../secrets"}, "", nil, provider.Invalid, "is not the name of a key"},
		"Case":        {"The case of the name counts.", provider.Ref{Key: "key/SIGN"}, "", nil, provider.Invalid, `the key is named "sign"; write the key so`},
		"Disabled":    {"Key Vault returns a disabled key, and the operator does not use it.", provider.Ref{Key: "key/disabled"}, "", nil, provider.Invalid, "is disabled; enable it"},
		"Expired":     {"An expired key is not used, and not missing.", provider.Ref{Key: "key/expired"}, "", nil, provider.Invalid, "has expired on "},
		"Early":       {"A key before its activation is not used.", provider.Ref{Key: "key/early"}, "", nil, provider.Invalid, "is not valid before "},
	}
	c := client(t, srv)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, ok := read(t, c, tc.reason, tc.ref, tc.class, tc.part)
			if !ok {
				return
			}
			var jwk struct{ Kty, Kid string }
			if err := json.Unmarshal(v.Data, &jwk); err != nil {
				t.Fatalf("%s\nGet(...) = %q, %v", tc.reason, v.Data, err)
			}
			der, err := x509.MarshalPKIXPublicKey(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{jwk.Kty, jwk.Kid[strings.LastIndex(jwk.Kid, "/")+1:], string(v.Further["publicKey"].Data)}
			if diff := cmp.Diff([]string{tc.kind, v.Version, block("PUBLIC KEY", der)}, got); diff != "" {
				t.Errorf("%s\nkty, version, public key: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	hasTag(t, c, "key/sign")
}

// TestPublicKey decodes keys for which Go has no public key, and some with members that are not valid.
func TestPublicKey(t *testing.T) {
	ec := newKey(t)
	point, err := ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	x, y := text(point[1:33]), text(point[33:])
	cases := map[string]struct {
		reason string
		jwk    string
		want   bool
	}{
		"EC":      {"A point on the curve is a public key.", `{"kty":"EC","crv":"P-256","x":"` + x + `","y":"` + y + `"}`, true},
		"OffEC":   {"A point that is not on the curve is none.", `{"kty":"EC","crv":"P-256","x":"` + y + `","y":"` + x + `"}`, false},
		"LongEC":  {"A member that is too long is none.", `{"kty":"EC","crv":"P-256","x":"` + text(append([]byte{1}, point...)) + `","y":"` + y + `"}`, false},
		"P256K":   {"Go does not have the curve.", `{"kty":"EC","crv":"P-256K","x":"` + x + `","y":"` + y + `"}`, false},
		"Oct":     {"A symmetric key has no public part.", `{"kty":"oct-HSM"}`, false},
		"RSA":     {"A modulus and an exponent are a public key.", `{"kty":"RSA","n":"` + x + `","e":"AQAB"}`, true},
		"NoRSA":   {"An RSA key without members is none.", `{"kty":"RSA"}`, false},
		"NoE":     {"A modulus alone is none.", `{"kty":"RSA","n":"` + x + `"}`, false},
		"LongRSA": {"An exponent that is too long is none.", `{"kty":"RSA","n":"` + x + `","e":"` + y + `"}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var key azkeys.JSONWebKey
			if err := json.Unmarshal([]byte(tc.jwk), &key); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, publicPEM(key) != nil); diff != "" {
				t.Errorf("%s\nhas a public key: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestObjectAnswers reads a certificate and a key while Key Vault fails. A denial names the permission and the role.
func TestObjectAnswers(t *testing.T) {
	forbidden := func(inner string) emulator.Fault {
		return emulator.Fault{Status: http.StatusForbidden, Code: "Forbidden", Inner: inner, Message: "hunter2"}
	}
	cases := map[string]struct {
		reason string
		key    string
		fault  emulator.Fault
		class  provider.Class
		part   string
	}{
		"CertificatePolicy": {"A certificate needs the permission for secrets.", "cert/db", forbidden("AccessDenied"), provider.Denied, "add the permission Get of secrets to the policy"},
		"CertificateRBAC":   {"A certificate needs a role that reads secrets.", "cert/db", forbidden("ForbiddenByRbac"), provider.Denied, "a role such as Key Vault Secrets User"},
		"CertificateBody":   {"An answer without a value is not an empty certificate.", "cert/db", emulator.Fault{Body: emulator.BodyNoValue}, provider.Unavailable, "the response is not that of Key Vault"},
		"CertificateOther":  {"An answer about another secret is not used.", "cert/db", emulator.Fault{Body: emulator.BodyOtherName}, provider.Unavailable, "is about another certificate"},
		"KeyPolicy":         {"A key needs the permission for keys.", "key/db", forbidden("ForbiddenByPolicy"), provider.Denied, "add the permission Get of keys to the policy"},
		"KeyRBAC":           {"A key needs a role that reads keys.", "key/db", forbidden("ForbiddenByRbac"), provider.Denied, "a role such as Key Vault Crypto User"},
		"KeyMissing":        {"The code of a missing secret does not prove that a key is missing.", "key/db", emulator.Fault{Status: http.StatusNotFound, Code: "SecretNotFound"}, provider.Unavailable, "the status 404"},
		"KeyBody":           {"An answer without a key is not an empty one.", "key/db", emulator.Fault{Body: emulator.BodyNoValue}, provider.Unavailable, "the response is not that of Key Vault"},
		"KeyOther":          {"An answer about another key is not used.", "key/db", emulator.Fault{Body: emulator.BodyOtherName}, provider.Unavailable, "is about another key"},
	}
	leaf, _, _, private := issue(t)
	srv := start(t)
	certificate(t, srv, "db", emulator.Certificate{PEM: private + leaf})
	publish(t, srv, "db", newKey(t).Public())
	c := client(t, srv)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.fault.Key = "db"
			defer srv.Inject(tc.fault)()
			_, err := c.Get(soon(t), provider.Ref{Key: tc.key})
			fails(t, tc.reason, err, tc.class, tc.part)
		})
	}
}

// TestPushObjects pushes to certificates and keys: an error before any call.
func TestPushObjects(t *testing.T) {
	srv := start(t)
	c := client(t, srv)
	for key, part := range map[string]string{
		"cert/web": "a certificate cannot be pushed to; use the name of a secret",
		"key/sign": "a key cannot be pushed to; use the name of a secret",
	} {
		t.Run(key, func(t *testing.T) {
			_, err := c.Observe(soon(t), provider.Target{Key: key})
			fails(t, "It is read only.", err, provider.Invalid, part)
			_, err = c.Create(soon(t), provider.Target{Key: key}, []byte("x"), mark)
			fails(t, "It is read only.", err, provider.Invalid, part)
		})
	}
	if calls := srv.Calls(); len(calls) > 0 {
		t.Errorf("%d calls", len(calls))
	}
}
