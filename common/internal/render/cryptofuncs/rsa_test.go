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
		"SHA1":       {"A hash is served.", [4]string{"RSA-OAEP", "SHA1", fixture(t, "oaep-sha1.bin"), rsaKey}, result{Value: "hunter2"}},
		"SHA256":     {"A hash is served.", [4]string{"RSA-OAEP", "SHA256", oaep, rsaKey}, result{Value: "hunter2"}},
		"SHA512":     {"A hash is served.", [4]string{"RSA-OAEP", "SHA512", fixture(t, "oaep-sha512.bin"), rsaKey}, result{Value: "hunter2"}},
		"NoHash":     {"No hash is SHA-256.", [4]string{"RSA-OAEP", "None", oaep, rsaKey}, result{Value: "hunter2"}},
		"PKCS1Key":   {"The key may be PKCS#1.", [4]string{"RSA-OAEP", "SHA256", oaep, fixture(t, "rsa-pkcs1.pem")}, result{Value: "hunter2"}},
		"None":       {"No scheme gives the text as it is.", [4]string{"None", "SHA256", "hunter2", ""}, result{Value: "hunter2"}},
		"OtherHash":  {"Another hash cannot be seen in the cipher text.", [4]string{"RSA-OAEP", "SHA1", oaep, rsaKey}, result{Value: "", Err: "cannot be decrypted with this key"}},
		"PKCS1v15":   {"A padding that can be asked about is refused.", [4]string{"RSAES-PKCS1-v1_5", "None", fixture(t, "pkcs1v15.bin"), rsaKey}, result{Value: "", Err: "serves the schemes RSA-OAEP and None"}},
		"OtherPad":   {"A cipher text of another scheme is none of this.", [4]string{"RSA-OAEP", "SHA256", fixture(t, "pkcs1v15.bin"), rsaKey}, result{Value: "", Err: "cannot be decrypted with this key"}},
		"UnknownMD":  {"An unknown hash is not taken for SHA-256.", [4]string{"RSA-OAEP", "MD5", oaep, rsaKey}, result{Value: "", Err: "serves the hashes SHA1, SHA256, SHA512"}},
		"Base64":     {"Base64 is a usual mistake.", [4]string{"RSA-OAEP", "SHA256", encodeBase64(oaep), rsaKey}, result{Value: "", Err: "decode it first with b64dec"}},
		"OtherKind":  {"Another key decrypts nothing.", [4]string{"RSA-OAEP", "SHA256", oaep, fixture(t, "ec.pem")}, result{Value: "", Err: "is not an RSA key"}},
		"SmallKey":   {"A key that can be broken is refused.", [4]string{"RSA-OAEP", "SHA1", oaep[:64], fixture(t, "rsa-512.pem")}, result{Value: "", Err: "keys below 1024 bits are refused"}},
		"NoKey":      {"A certificate decrypts nothing.", [4]string{"RSA-OAEP", "SHA256", oaep, fixture(t, "leaf.pem")}, result{Value: "", Err: "the PEM holds no PRIVATE KEY block"}},
		"SwappedKey": {"The key comes last.", [4]string{"RSA-OAEP", "SHA256", rsaKey, oaep}, result{Value: "", Err: "the PEM holds no PRIVATE KEY block"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, resultOf(tc.want.Err, "rsaDecrypt", tc.args[:]...)); diff != "" {
				t.Errorf("%s\nrsaDecrypt(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
