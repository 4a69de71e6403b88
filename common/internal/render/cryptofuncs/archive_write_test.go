package cryptofuncs

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"software.sslmate.com/src/go-pkcs12"
)

func decodeBase64(s string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	return string(b), err
}

func encodeBase64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// write calls a function that makes an archive, twice, and returns the archive.
func write(t testing.TB, name string, args ...string) string {
	t.Helper()
	v, err := call(name, args...)
	if err != nil {
		t.Fatalf("%s(...): %v", name, err)
	}
	again, err := call(name, args...)
	if err != nil || again != v {
		t.Errorf("%s(...): the same arguments made another archive, so that each refresh would write", name)
	}
	archive, err := decodeBase64(v.(string))
	if err != nil {
		t.Fatalf("%s(...): %v", name, err)
	}
	return archive
}

// TestWriteArchives reads each new archive with openssl, with go-pkcs12, and with this package. All must find its
// contents.
func TestWriteArchives(t *testing.T) {
	issuers := []string{"issuers.pem"}
	cases := map[string]struct {
		reason string
		certs  []string
		key    string
		pkcs8  string
		want   []string
	}{
		"RSA":        {"An RSA pair.", []string{"leaf.pem"}, "rsa.pem", "rsa.pem", []string{"leaf.pem"}},
		"PKCS1":      {"The key can be PKCS#1.", []string{"leaf.pem"}, "rsa-pkcs1.pem", "rsa.pem", []string{"leaf.pem"}},
		"EC":         {"The key can be EC.", []string{"leaf-ec.pem"}, "ec.pem", "ec.pem", []string{"leaf-ec.pem"}},
		"SEC1":       {"The key can be SEC 1 after its parameters.", []string{"leaf-ec.pem"}, "ec-sec1.pem", "ec.pem", []string{"leaf-ec.pem"}},
		"P521":       {"The key can be on a larger curve.", []string{"leaf-521.pem"}, "ec-521.pem", "ec-521.pem", []string{"leaf-521.pem"}},
		"Ed25519":    {"The key can be Ed25519.", []string{"leaf-ed25519.pem"}, "ed25519.pem", "ed25519.pem", []string{"leaf-ed25519.pem"}},
		"Chain":      {"The whole chain is kept.", append([]string{"leaf.pem"}, issuers...), "rsa.pem", "rsa.pem", append([]string{"leaf.pem"}, issuers...)},
		"OtherOrder": {"The certificate of the key comes first, whatever its place.", append(issuers, "leaf.pem"), "rsa.pem", "rsa.pem", append([]string{"leaf.pem"}, issuers...)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			certs, key := fixture(t, tc.certs...), fixture(t, tc.key)
			full, leaf := ofType(t, "", fixture(t, tc.want...)), ofType(t, "", fixture(t, tc.want[0]))
			for _, c := range []struct {
				function, password string
				want               []string
			}{
				{"pemToPkcs12", "", leaf},
				{"pemToPkcs12Pass", "schlüssel", leaf},
				{"fullPemToPkcs12", "", full},
				{"fullPemToPkcs12Pass", "changeit", full},
			} {
				args := []string{certs, key}
				if strings.HasSuffix(c.function, "Pass") {
					args = append(args, c.password)
				}
				archive := write(t, c.function, args...)
				want := append(slices.Clone(c.want), fixture(t, tc.pkcs8))
				out := openssl(t, archive, "pkcs12", "-noenc", "-passin", "pass:"+c.password)
				if diff := cmp.Diff(want, ofType(t, "", out)); diff != "" {
					t.Errorf("%s\n%s(...) read by openssl: -want, +got:\n%s", tc.reason, c.function, diff)
				}
				if _, _, others, err := pkcs12.DecodeChain([]byte(archive), c.password); err != nil || len(others) != len(c.want)-1 {
					t.Errorf("%s\n%s(...) read by go-pkcs12: %d issuers, %v", tc.reason, c.function, len(others), err)
				}
				check(t, tc.reason, 1, "pkcs12keyPass", want[len(want)-1:], c.password, archive)
				check(t, tc.reason, len(c.want), "pkcs12certPass", slices.Clone(c.want), c.password, archive)
			}
		})
	}
}

func TestWriteTrustStores(t *testing.T) {
	certs := []string{"root.pem", "root-other.pem", "root-renewed.pem"}
	for _, password := range []string{"", "changeit"} {
		archive := write(t, "pemTruststoreToPKCS12Pass", fixture(t, append(certs, "root.pem")...), password)
		want := ofType(t, "", fixture(t, certs...))
		if diff := cmp.Diff(want, ofType(t, "", openssl(t, archive, "pkcs12", "-nokeys", "-passin", "pass:"+password))); diff != "" {
			t.Errorf("pemTruststoreToPKCS12Pass(...) read by openssl: -want, +got:\n%s", diff)
		}
		if got, err := pkcs12.DecodeTrustStore([]byte(archive), password); err != nil || len(got) != len(want) {
			t.Errorf("pemTruststoreToPKCS12Pass(...) read by go-pkcs12: %d certificates, %v", len(got), err)
		}
		check(t, "A trust store is read again.", len(want), "pkcs12certPass", want, password, archive)
	}
	empty := write(t, "pemTruststoreToPKCS12", fixture(t, certs...))
	check(t, "No password is an empty one.", len(certs), "pkcs12cert", ofType(t, "", fixture(t, certs...)), empty)
}

// TestJavaReads checks that Java reads the archives, and keeps two certificates with the same name. testdata has
// archives of Java for the other direction.
func TestJavaReads(t *testing.T) {
	if _, err := exec.LookPath("keytool"); err != nil {
		t.Fatal("this test compares with Java; install a Java runtime, which has keytool")
	}
	cases := map[string]struct {
		reason  string
		archive string
		want    int
		entry   string
	}{
		"Pair": {
			reason:  "A pair with its chain is one entry.",
			archive: write(t, "fullPemToPkcs12Pass", fixture(t, "leaf.pem", "issuers.pem"), fixture(t, "rsa.pem"), "changeit"),
			want:    1,
			entry:   "PrivateKeyEntry",
		},
		"TrustStore": {
			reason:  "Each certificate is an entry, also with the same subject as another one.",
			archive: write(t, "pemTruststoreToPKCS12Pass", fixture(t, "root.pem", "root-renewed.pem", "root-other.pem"), "changeit"),
			want:    3,
			entry:   "trustedCertEntry",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.p12")
			if err := os.WriteFile(file, []byte(tc.archive), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := run("", "keytool", "-J-Duser.language=en", "-list", "-storetype", "PKCS12", "-keystore", file, "-storepass", "changeit")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Count(out, tc.entry)); diff != "" {
				t.Errorf("%s\nkeytool -list: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRefusePairs(t *testing.T) {
	leaf, key := fixture(t, "leaf.pem"), fixture(t, "rsa.pem")
	cases := map[string]struct {
		reason string
		certs  string
		key    string
		want   string
	}{
		"NoCertificate":      {"A key is not a certificate.", key, key, "the PEM holds no CERTIFICATE block"},
		"Empty":              {"An empty value has no certificate.", "", key, "the PEM holds no CERTIFICATE block"},
		"NoKey":              {"A certificate is not a key.", leaf, leaf, "the PEM holds no PRIVATE KEY block"},
		"OtherKey":           {"A key that does not match the certificate is refused.", leaf, fixture(t, "ec.pem"), "matches none of the certificates"},
		"Encrypted":          {"An encrypted key is refused: there is no argument for a passphrase.", leaf, fixture(t, "rsa-encrypted.pem"), "the private key is encrypted"},
		"EncryptedPKCS1":     {"An encrypted key is refused: there is no argument for a passphrase.", leaf, fixture(t, "rsa-pkcs1-encrypted.pem"), "the private key is encrypted"},
		"UnknownCurve":       {"A curve that Go does not support is refused.", leaf, fixture(t, "ec-koblitz.pem"), "the private key cannot be read"},
		"KeyAgreement":       {"An X25519 key, which cannot sign, is refused.", leaf, fixture(t, "x25519.pem"), "matches none of the certificates"},
		"DamagedCertificate": {"A block that is not a certificate is refused.", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", key, "certificate 1 cannot be read"},
		"TruncatedChain":     {"A truncated certificate is an error, and is not skipped.", leaf + leaf[:200], key, "block 2 of the PEM is damaged"},
		"LineBreaks":         {"The message names escaped line breaks.", strings.ReplaceAll(leaf, "\n", `\n`), key, "real line breaks"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, f := range []string{"pemToPkcs12", "fullPemToPkcs12"} {
				if diff := cmp.Diff(result{Value: "", Err: tc.want}, resultOf(tc.want, f, tc.certs, tc.key)); diff != "" {
					t.Errorf("%s\n%s(...): -want, +got:\n%s", tc.reason, f, diff)
				}
				if diff := cmp.Diff(result{Value: "", Err: tc.want}, resultOf(tc.want, f+"Pass", tc.certs, tc.key, "changeit")); diff != "" {
					t.Errorf("%s\n%sPass(...): -want, +got:\n%s", tc.reason, f, diff)
				}
			}
		})
	}
}

func TestRefusePasswords(t *testing.T) {
	leaf, key := fixture(t, "leaf.pem"), fixture(t, "rsa.pem")
	cases := map[string]struct {
		reason   string
		password string
		want     string
	}{
		"Bytes": {"A password that is not text is refused: tools would treat such passwords as equal.", "\xff\xfe", "is not UTF-8 text"},
		"Emoji": {"A character that PKCS#12 does not support is refused.", "😀", "has a character that PKCS#12 cannot"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := result{Value: "", Err: tc.want}
			for _, f := range []string{"pemToPkcs12Pass", "fullPemToPkcs12Pass"} {
				if diff := cmp.Diff(want, resultOf(tc.want, f, leaf, key, tc.password)); diff != "" {
					t.Errorf("%s\n%s(...): -want, +got:\n%s", tc.reason, f, diff)
				}
			}
			if diff := cmp.Diff(want, resultOf(tc.want, "pemTruststoreToPKCS12Pass", leaf, tc.password)); diff != "" {
				t.Errorf("%s\npemTruststoreToPKCS12Pass(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAliases(t *testing.T) {
	cert := func(subject string, serial int) string {
		return openssl(t, fixture(t, "ec.pem"), "req", "-x509", "-utf8", "-key", "/dev/stdin", "-subj", subject, "-set_serial", fmt.Sprint(serial))
	}
	certs, err := certificates(cert("/CN=a", 1) + cert("/CN=A", 2) + cert("/CN=a", 3) + cert("/CN=a (2)", 4) + cert("/CN=a", 5) +
		cert("/", 6) + cert("/CN=x😀", 7))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries(certs) {
		got = append(got, e.FriendlyName)
	}
	want := []string{"CN=a", "CN=A (2)", "CN=a (3)", "CN=a (2) (2)", "CN=a (4)", "certificate", "CN=x\ufffd"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries(...): -want, +got:\n%s", diff)
	}
}
