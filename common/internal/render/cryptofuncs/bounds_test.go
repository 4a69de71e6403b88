package cryptofuncs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// maxTime is the maximum processor time of a function in these tests. The limits aim at less than a second on an idle
// processor.
const maxTime = 2 * time.Second

// spent returns the processor time of this process. It does not depend on the other load of the machine.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// everyWay calls each function with text at each argument, and with others at the other arguments.
func everyWay(text string, others []string, each func(name string, v any, err error)) {
	for name, f := range Functions() {
		for place := range reflect.TypeOf(f).NumIn() {
			for _, other := range others {
				args := make([]string, reflect.TypeOf(f).NumIn())
				for i := range args {
					args[i] = other
				}
				args[place] = text
				if name == "rsaDecrypt" && place > 1 {
					args[0], args[1] = "RSA-OAEP", "SHA256"
				}
				v, err := call(name, args...)
				each(name, v, err)
			}
		}
	}
}

// hostile returns arguments that ask for the maximum work. Fixtures with changed bytes have wrong signatures, which
// the functions do not check.
func hostile(t testing.TB) map[string]string {
	leaf := fixture(t, "leaf-ed25519.pem")
	plain, _ := pem.Decode([]byte(fixture(t, "leaf-plain.pem")))
	root, _ := pem.Decode([]byte(fixture(t, "root.pem")))
	var web strings.Builder
	for i := range maxCertificates {
		der := plain.Bytes
		if i%2 == 1 {
			der = root.Bytes
		}
		der = append([]byte{}, der...)
		der[20], der[21] = byte(i>>8), byte(i) // The serial number.
		web.Write(pem.EncodeToMemory(&pem.Block{Type: certificate, Bytes: der}))
	}
	return map[string]string{
		"Certificates":  strings.Repeat(leaf, maxInput/len(leaf)),
		"Web":           web.String(),
		"Blocks":        strings.Repeat("-----BEGIN A-----\n-----END A-----\n", maxInput/35),
		"Begins":        strings.Repeat("-----BEGIN A-----\n", maxInput/18),
		"Ends":          "-----BEGIN A-----\n" + strings.Repeat("\n-----END A", (maxInput-18)/11),
		"Headers":       "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("a: b\n", maxInput/5-20) + "\n-----END CERTIFICATE-----\n",
		"Depth":         strings.Repeat("[", maxInput),
		"Objects":       strings.Repeat(`{"n":`, maxInput/5),
		"Members":       `{` + strings.Repeat(`"n":"",`, maxInput/7-2) + `"n":""}`,
		"Sequences":     strings.Repeat("\x30\x80", maxInput/2),
		"Zeros":         strings.Repeat("\x00", maxInput),
		"ManyBags":      archiveOf(t, strings.Repeat(string(bag(t, 1, 5)), 6000)),
		"ManyParts":     manyParts(t, 40_000),
		"Iterations":    archiveOf(t, string(bag(t, 1<<31-1, 8))),
		"MoreEach":      archiveOf(t, strings.Repeat(string(bag(t, 5000, 8)), 3000)),
		"LongSalts":     archiveOf(t, strings.Repeat(string(bag(t, 1, 100_000)), 9)),
		"NoIterations":  archiveOf(t, string(bag(t, 0, 8))),
		"Negative":      archiveOf(t, string(bag(t, -1, 8))),
		"Modulus":       modulus(t, 5_000_000),
		"LargeKey":      key(t, 14_000, 14_000),
		"Unbalanced":    key(t, 8000, 192),
		"ManyPasswords": strings.Repeat("a", maxInput),
	}
}

// bag returns a bag with a key whose encryption asks for a number of iterations and a salt of a size.
func bag(t testing.TB, iterations, salt int) []byte {
	params := struct {
		Salt       []byte
		Iterations int
	}{make([]byte, salt), iterations}
	info := encryptedPrivateKeyInfo{Encrypted: make([]byte, 8)}
	info.Algorithm.Algorithm = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 1, 3}
	info.Algorithm.Parameters.FullBytes = der(t, params)
	return der(t, struct {
		ID    asn1.ObjectIdentifier
		Value encryptedPrivateKeyInfo `asn1:"tag:0,explicit"`
	}{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 12, 10, 1, 2}, info})
}

// content is a ContentInfo of data.
type content struct {
	Type  asn1.ObjectIdentifier
	Value []byte `asn1:"tag:0,explicit"`
}

func data(value []byte) content {
	return content{Type: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}, Value: value}
}

// archiveOf returns an archive of bags without encryption and MAC.
func archiveOf(t testing.TB, bags string) string {
	return archive(t, []content{data(der(t, asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: []byte(bags)}))})
}

// manyParts returns an archive of n parts without bags.
func manyParts(t testing.TB, n int) string {
	return archive(t, slices.Repeat([]content{data(der(t, []safeBag{}))}, n))
}

func archive(t testing.TB, parts []content) string {
	return string(der(t, struct {
		Version int
		Safe    content
	}{3, data(der(t, parts))}))
}

func der(t testing.TB, v any) []byte {
	t.Helper()
	b, err := asn1.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// modulus returns a certificate with an RSA key of a size in bits.
func modulus(t testing.TB, bits uint) string {
	ca, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n := new(big.Int).Lsh(big.NewInt(3), bits)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "huge"}}
	c, err := x509.CreateCertificate(rand.Reader, template, template, &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 3}, ca)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: certificate, Bytes: c}))
}

// key returns an RSA key of two numbers of a size in bits. They need not be prime, because the code does not check
// that.
func key(t testing.TB, p, q uint) string {
	one, e := big.NewInt(1), big.NewInt(65537)
	var primes []*big.Int
	for _, bits := range []uint{p, q} {
		n := new(big.Int).Lsh(one, bits-1)
		for n.SetBit(n, 0, 1); new(big.Int).GCD(nil, nil, e, new(big.Int).Sub(n, one)).Cmp(one) != 0 || len(primes) > 0 && new(big.Int).GCD(nil, nil, n, primes[0]).Cmp(one) != 0; {
			n.Add(n, big.NewInt(2))
		}
		primes = append(primes, n)
	}
	p1, q1 := new(big.Int).Sub(primes[0], one), new(big.Int).Sub(primes[1], one)
	d := new(big.Int).ModInverse(e, new(big.Int).Mul(p1, q1))
	b := der(t, struct {
		Version                     int
		N, E, D, P, Q, Dp, Dq, Qinv *big.Int
	}{
		0, new(big.Int).Mul(primes[0], primes[1]), e, d, primes[0], primes[1],
		new(big.Int).Mod(d, p1), new(big.Int).Mod(d, q1), new(big.Int).ModInverse(primes[1], primes[0]),
	})
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: b}))
}

// TestBounds checks that no argument of at most 1 MiB keeps a function busy.
func TestBounds(t *testing.T) {
	others := []string{"", fixture(t, "rsa.pem", "leaf.pem"), strings.Repeat("a", maxInput)}
	for name, text := range hostile(t) {
		t.Run(name, func(t *testing.T) {
			if len(text) > maxInput {
				t.Fatalf("the argument has %d bytes and is refused", len(text))
			}
			start := spent()
			everyWay(text, others, func(name string, _ any, _ error) {
				if took := spent() - start; took > maxTime {
					t.Errorf("%s(...): took %v", name, took)
				}
				start = spent()
			})
		})
	}
}

func TestRefuseLargeKeys(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    string
		want   string
	}{
		"Bytes":      {"A value larger than any key is not parsed.", key(t, 14_000, 14_000), "the private key has "},
		"Modulus":    {"A large modulus makes operations slow.", key(t, 5000, 4900), "at most 8192 are supported"},
		"Unbalanced": {"A large prime makes operations slow.", key(t, 8000, 192), "or one of more than 4096 bits"},
		"Usual":      {"A key of the usual shape is accepted, but does not match the cipher text.", key(t, 1500, 1490), "one for this key has 374"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(result{Value: "", Err: tc.want}, resultOf(tc.want, "rsaDecrypt", "RSA-OAEP", "SHA256", "", tc.key)); diff != "" {
				t.Errorf("%s\nrsaDecrypt(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRefuseContents reads well-formed archives with contents that are not supported.
func TestRefuseContents(t *testing.T) {
	oid := func(last ...int) asn1.ObjectIdentifier {
		return append(asn1.ObjectIdentifier{1, 2, 840, 113549, 1}, last...)
	}
	bagOf := func(kind asn1.ObjectIdentifier, value any) string {
		inner := asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: der(t, value)}
		return string(der(t, struct {
			Type  asn1.ObjectIdentifier
			Value asn1.RawValue
		}{kind, inner}))
	}
	sdsi := asn1.RawValue{FullBytes: []byte(bagOf(oid(9, 22, 2), []byte("sdsi")))}
	signed := content{Type: oid(7, 2), Value: []byte("signed")}
	cases := map[string]struct {
		reason  string
		archive string
		want    string
	}{
		"BagsWithinBags":   {"Nested bags are an error, and are not skipped.", archiveOf(t, bagOf(oid(12, 10, 1, 6), []int{})), "has nested bags"},
		"OtherBag":         {"Revocation lists and secrets are skipped.", archiveOf(t, bagOf(oid(12, 10, 1, 5), 1)), "the archive has no"},
		"OtherCertificate": {"Certificates that are not X.509 are skipped.", archiveOf(t, bagOf(oid(12, 10, 1, 3), sdsi)), "the archive has no"},
		"Signed":           {"A signed part is refused.", archive(t, []content{signed}), "the encryption of the archive is not supported"},
		"NoParts":          {"An archive can be empty.", archive(t, nil), "the archive has no"},
		"NotBags":          {"A part without bags is refused.", archive(t, []content{data([]byte("text"))}), "is damaged"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, f := range []string{"pkcs12key", "pkcs12cert"} {
				if diff := cmp.Diff(result{Value: "", Err: tc.want}, resultOf(tc.want, f, tc.archive)); diff != "" {
					t.Errorf("%s\n%s(...): -want, +got:\n%s", tc.reason, f, diff)
				}
			}
		})
	}
}
