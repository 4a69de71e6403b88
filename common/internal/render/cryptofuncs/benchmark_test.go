package cryptofuncs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkFunctions measures the cost of the functions, which the template engine charges: with usual arguments, and
// with the slowest ones that are accepted.
func BenchmarkFunctions(b *testing.B) {
	leaf, chained, rsaKey := fixture(b, "leaf.pem"), fixture(b, "leaf.pem", "issuers.pem"), fixture(b, "rsa.pem")
	all := hostile(b)
	large := openssl(b, "", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:8192")
	public := openssl(b, large, "pkey", "-pubout")
	cases := map[string][]string{
		"pkcs12keyPass":                        {"changeit", fixture(b, "modern.p12")},
		"pkcs12keyPass/Worst":                  {"changeit", fixture(b, "iterations-600000.p12")},
		"pkcs12certPass":                       {"changeit", fixture(b, "modern.p12")},
		"pkcs12cert/ManyBags":                  {all["ManyBags"]},
		"pemToPkcs12Pass":                      {leaf, rsaKey, "changeit"},
		"fullPemToPkcs12Pass":                  {chained, rsaKey, "changeit"},
		"fullPemToPkcs12Pass/Worst":            {leaf + strings.Join(ofType(b, "", all["Web"])[1:], ""), rsaKey, "changeit"},
		"pemTruststoreToPKCS12Pass":            {fixture(b, "root.pem"), "changeit"},
		"pemTruststoreToPKCS12Pass/Worst":      {all["Web"], "changeit"},
		"filterPEM":                            {"CERTIFICATE", chained},
		"filterPEM/Worst":                      {"a", all["Blocks"]},
		"filterCertChain":                      {"leaf", chained},
		"filterCertChain/Worst":                {"leaf", all["Web"]},
		"certSANs":                             {leaf},
		"certSANs/Worst":                       {all["Web"]},
		"jwkPublicKeyPem":                      {jwkOf(rsaJWK)},
		"jwkPrivateKeyPem":                     {jwkOf(rsaJWK)},
		"jwkPrivateKeyPem/Worst":               {all["Members"]},
		"rsaDecrypt":                           {"RSA-OAEP", "SHA256", fixture(b, "oaep-sha256.bin"), rsaKey},
		"rsaDecrypt/Worst":                     {"RSA-OAEP", "SHA256", encrypted(b, public), large},
		"pemToPkcs12Pass/LargestKeyOfOthers":   {leaf, large, "changeit"},
		"pemTruststoreToPKCS12Pass/OneModulus": {all["Modulus"], "changeit"},
	}
	for name, args := range cases {
		b.Run(name, func(b *testing.B) {
			function, _, _ := strings.Cut(name, "/")
			for b.Loop() {
				_, _ = call(function, args...)
			}
		})
	}
}

// encrypted returns a cipher text for a public key.
func encrypted(b *testing.B, public string) string {
	file := filepath.Join(b.TempDir(), "public.pem")
	if err := os.WriteFile(file, []byte(public), 0o600); err != nil {
		b.Fatal(err)
	}
	return openssl(b, "hunter2", "pkeyutl", "-encrypt", "-pubin", "-inkey", file, "-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256")
}
