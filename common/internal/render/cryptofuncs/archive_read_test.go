package cryptofuncs

import (
	"bytes"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"software.sslmate.com/src/go-pkcs12"
)

// TestReadArchives checks that each archive of openssl and keytool has the same keys and certificates as openssl
// reads from it.
func TestReadArchives(t *testing.T) {
	cases := map[string]struct {
		reason   string
		password string
		keys     int
		certs    int
	}{
		"modern.p12":            {"The default of OpenSSL 3.", "changeit", 1, 4},
		"modern-empty.p12":      {"An empty password.", "", 1, 4},
		"modern-umlaut.p12":     {"A password with a letter that is not ASCII.", "schlüssel", 1, 4},
		"legacy.p12":            {"The default of OpenSSL 1: RC2 with 40 bits and 3DES.", "changeit", 1, 4},
		"des3.p12":              {"3DES by the method of PKCS#12.", "changeit", 1, 4},
		"des2.p12":              {"3DES with two keys.", "changeit", 1, 4},
		"rc2-128.p12":           {"RC2 with 128 bits.", "changeit", 1, 4},
		"des3-pbes2.p12":        {"3DES by PBES2, and SHA-224.", "changeit", 1, 4},
		"aes128-sha512.p12":     {"AES-128, and a MAC with SHA-512.", "changeit", 1, 4},
		"aes192-sha384.p12":     {"AES-192, and a MAC with SHA-384.", "changeit", 1, 4},
		"open.p12":              {"Without encryption and MAC.", "", 1, 4},
		"nomac.p12":             {"Without MAC, the padding shows whether the password is right.", "changeit", 1, 4},
		"iterations-600000.p12": {"The number of rounds that OWASP recommends.", "changeit", 1, 4},
		"ec.p12":                {"A key of an elliptic curve.", "changeit", 1, 1},
		"ed25519.p12":           {"An Ed25519 key.", "changeit", 1, 1},
		"key-only.p12":          {"A key alone, of an algorithm that Go does not support.", "changeit", 1, 0},
		"certs-only.p12":        {"Certificates alone.", "changeit", 0, 3},
		"java.p12":              {"Two keys of Java and their certificates, which are not a chain.", "changeit", 2, 2},
		"java-trust.p12":        {"A trust store of Java.", "changeit", 0, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			archive := fixture(t, name)
			all := openssl(t, archive, "pkcs12", "-legacy", "-noenc", "-passin", "pass:"+tc.password)
			check(t, tc.reason, tc.keys, "pkcs12keyPass", ofType(t, "PRIVATE KEY", all), tc.password, archive)
			check(t, tc.reason, tc.certs, "pkcs12certPass", ofType(t, "CERTIFICATE", all), tc.password, archive)
			if tc.password == "" {
				check(t, tc.reason, tc.keys, "pkcs12key", ofType(t, "PRIVATE KEY", all), archive)
				check(t, tc.reason, tc.certs, "pkcs12cert", ofType(t, "CERTIFICATE", all), archive)
			}
		})
	}
}

// check compares the n blocks in a function's result with the wanted ones. It ignores the order of certificates.
func check(t *testing.T, reason string, n int, name string, want []string, args ...string) {
	t.Helper()
	if len(want) != n {
		t.Fatalf("%s: openssl reads %d blocks, want %d", name, len(want), n)
	}
	if n == 0 {
		if diff := cmp.Diff(result{Value: "", Err: "the archive has no"}, resultOf("the archive has no", name, args...)); diff != "" {
			t.Errorf("%s\n%s(...): -want, +got:\n%s", reason, name, diff)
		}
		return
	}
	v, err := call(name, args...)
	if err != nil {
		t.Fatalf("%s\n%s(...): %v", reason, name, err)
	}
	got := ofType(t, "", v.(string))
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s(...): -want, +got:\n%s", reason, name, diff)
	}
}

// ofType returns the blocks of a type, or all blocks, without their headers.
func ofType(t testing.TB, blockType, text string) []string {
	t.Helper()
	var out []string
	for rest := []byte(text); ; {
		i := bytes.Index(rest, []byte("-----BEGIN"))
		if i < 0 {
			return out
		}
		var b *pem.Block
		if b, rest = pem.Decode(rest[i:]); b == nil {
			t.Fatal("no PEM")
		}
		if blockType == "" || b.Type == blockType {
			out = append(out, string(pem.EncodeToMemory(&pem.Block{Type: b.Type, Bytes: b.Bytes})))
		}
	}
}

// TestReadPBMAC1 reads the newest profile, which OpenSSL writes since 3.4, and go-pkcs12 optionally.
func TestReadPBMAC1(t *testing.T) {
	key, leaf, _, err := pair(fixture(t, "leaf.pem"), fixture(t, "rsa.pem"))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := pkcs12.Modern2026.Encode(key, leaf, nil, "schlüssel")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(result{Value: fixture(t, "rsa.pem")}, resultOf("", "pkcs12keyPass", "schlüssel", string(archive))); diff != "" {
		t.Errorf("pkcs12keyPass(...): -want, +got:\n%s", diff)
	}
	want := result{Value: "", Err: "cannot be opened with this password"}
	if diff := cmp.Diff(want, resultOf(want.Err, "pkcs12certPass", "hunter2", string(archive))); diff != "" {
		t.Errorf("pkcs12certPass(...): -want, +got:\n%s", diff)
	}
}

func TestReadArchivesOrder(t *testing.T) {
	// make.sh puts the issuers into the archives in another order.
	want := result{Value: fixture(t, "leaf.pem", "intermediate2.pem", "intermediate1.pem", "root.pem")}
	if diff := cmp.Diff(want, resultOf("", "pkcs12certPass", "changeit", fixture(t, "modern.p12"))); diff != "" {
		t.Errorf("pkcs12certPass(...): -want, +got:\n%s", diff)
	}
}

func TestRefuseArchives(t *testing.T) {
	modern := fixture(t, "modern.p12")
	cases := map[string]struct {
		reason   string
		password string
		archive  string
		want     string
	}{
		"WrongPassword": {
			reason:   "The MAC reveals a wrong password.",
			password: "hunter2",
			archive:  modern,
			want:     "cannot be opened with this password",
		},
		"NoPassword": {
			reason:  "The message names a missing password.",
			archive: modern,
			want:    "cannot be opened without a password",
		},
		"WrongPasswordWithoutMAC": {
			reason:   "Without MAC, the padding or the plain text reveals a wrong password.",
			password: "hunter2",
			archive:  fixture(t, "nomac.p12"),
			want:     "the archive ",
		},
		"Swapped": {
			reason:   "An archive is not a valid password.",
			password: modern,
			archive:  "changeit",
			want:     "the password of the archive is not UTF-8 text",
		},
		"Emoji": {
			reason:   "A password that tools encode in different ways is refused.",
			password: "😀",
			archive:  modern,
			want:     "has a character that PKCS#12 cannot",
		},
		"Base64": {
			reason:   "Base64 is not decoded, unlike in External Secrets Operator, and the error says so.",
			password: "changeit",
			archive:  encodeBase64(modern),
			want:     "the archive is base64; decode it first",
		},
		"PEM": {
			reason:   "PEM is not an archive.",
			password: "changeit",
			archive:  fixture(t, "leaf.pem"),
			want:     "not PKCS#12 in DER",
		},
		"Empty": {
			reason: "An empty value is not an archive.",
			want:   "not PKCS#12 in DER",
		},
		"Truncated": {
			reason:   "A truncated archive is refused.",
			password: "changeit",
			archive:  modern[:len(modern)/2],
			want:     "not PKCS#12 in DER",
		},
		"Trailing": {
			reason:   "Data after the archive is refused.",
			password: "changeit",
			archive:  modern + "\n",
			want:     "not PKCS#12 in DER",
		},
		"BER": {
			reason:   "The message names BER.",
			password: "changeit",
			archive:  "0\x80" + modern[4:],
			want:     "the archive is BER",
		},
		"RC4": {
			reason:   "RC4 is not supported.",
			password: "changeit",
			archive:  fixture(t, "rc4.p12"),
			want:     "the encryption of the archive is not supported",
		},
		"TooMuchWork": {
			reason:   "The work that an archive can ask for is limited.",
			password: "changeit",
			archive:  fixture(t, "iterations-2000000.p12"),
			want:     "take too much work",
		},
		"TooLarge": {
			reason:  "An argument above 1 MiB is refused.",
			archive: modern + strings.Repeat("\x00", maxInput),
			want:    "at most 1048576 are allowed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, f := range []string{"pkcs12keyPass", "pkcs12certPass"} {
				if diff := cmp.Diff(result{Value: "", Err: tc.want}, resultOf(tc.want, f, tc.password, tc.archive)); diff != "" {
					t.Errorf("%s\n%s(...): -want, +got:\n%s", tc.reason, f, diff)
				}
			}
		})
	}
}
