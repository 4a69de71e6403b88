package cryptofuncs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRSADecrypt(t *testing.T) {
	rsaKey, oaep := fixture(t, "rsa.pem"), fixture(t, "oaep-sha256.bin")
	cases := map[string]struct {
		reason string
		args   [4]string
		want   result
	}{
		"SHA1":       {"SHA1 is supported.", [4]string{"RSA-OAEP", "SHA1", fixture(t, "oaep-sha1.bin"), rsaKey}, result{Value: "hunter2"}},
		"SHA256":     {"SHA256 is supported.", [4]string{"RSA-OAEP", "SHA256", oaep, rsaKey}, result{Value: "hunter2"}},
		"SHA512":     {"SHA512 is supported.", [4]string{"RSA-OAEP", "SHA512", fixture(t, "oaep-sha512.bin"), rsaKey}, result{Value: "hunter2"}},
		"NoHash":     {"The hash None is SHA-256.", [4]string{"RSA-OAEP", "None", oaep, rsaKey}, result{Value: "hunter2"}},
		"PKCS1Key":   {"The key can be PKCS#1.", [4]string{"RSA-OAEP", "SHA256", oaep, fixture(t, "rsa-pkcs1.pem")}, result{Value: "hunter2"}},
		"None":       {"The scheme None returns the cipher text unchanged.", [4]string{"None", "SHA256", "hunter2", ""}, result{Value: "hunter2"}},
		"OtherHash":  {"A wrong hash is an error that does not name the hash.", [4]string{"RSA-OAEP", "SHA1", oaep, rsaKey}, result{Value: "", Err: "cannot be decrypted with this key"}},
		"PKCS1v15":   {"A scheme with a padding oracle is refused.", [4]string{"RSAES-PKCS1-v1_5", "None", fixture(t, "pkcs1v15.bin"), rsaKey}, result{Value: "", Err: "supports RSA-OAEP and None"}},
		"OtherPad":   {"A cipher text of another scheme is an error.", [4]string{"RSA-OAEP", "SHA256", fixture(t, "pkcs1v15.bin"), rsaKey}, result{Value: "", Err: "cannot be decrypted with this key"}},
		"UnknownMD":  {"An unknown hash is refused.", [4]string{"RSA-OAEP", "MD5", oaep, rsaKey}, result{Value: "", Err: "supports SHA1, SHA256, SHA512"}},
		"Base64":     {"The message names base64.", [4]string{"RSA-OAEP", "SHA256", encodeBase64(oaep), rsaKey}, result{Value: "", Err: "decode it first with b64dec"}},
		"OtherKind":  {"A key that is not RSA is refused.", [4]string{"RSA-OAEP", "SHA256", oaep, fixture(t, "ec.pem")}, result{Value: "", Err: "is not an RSA key"}},
		"SmallKey":   {"A key that can be broken is refused.", [4]string{"RSA-OAEP", "SHA1", oaep[:64], fixture(t, "rsa-512.pem")}, result{Value: "", Err: "keys below 1024 bits are refused"}},
		"NoKey":      {"A certificate is not a key.", [4]string{"RSA-OAEP", "SHA256", oaep, fixture(t, "leaf.pem")}, result{Value: "", Err: "the PEM holds no PRIVATE KEY block"}},
		"SwappedKey": {"The key must be the last argument.", [4]string{"RSA-OAEP", "SHA256", rsaKey, oaep}, result{Value: "", Err: "the PEM holds no PRIVATE KEY block"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, resultOf(tc.want.Err, "rsaDecrypt", tc.args[:]...)); diff != "" {
				t.Errorf("%s\nrsaDecrypt(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
