//go:build linux

package render

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/direct-secrets/direct-secrets/common/internal/fips"
	"github.com/direct-secrets/direct-secrets/common/internal/render/template"
)

// fipsEnv is the environment variable that marks a child of TestFIPSOnly. Its value is an RSA key of 1024 bits in PEM, which
// the child cannot create.
const fipsEnv = "RENDER_FIPS"

// fipsRefused are the functions whose line in calls fails under GODEBUG=fips140=only, with the reason of Go. The page
// docs/operate/fips.md lists them.
var fipsRefused = map[string]string{
	"sha1sum":             "SHA-1 is not approved",
	"pkcs12keyPass":       "OpenSSL writes salts of 8 bytes, and 16 are required",
	"pkcs12certPass":      "OpenSSL writes salts of 8 bytes, and 16 are required",
	"pemToPkcs12":         "the encoder identifies keys by SHA-1",
	"pemToPkcs12Pass":     "the encoder identifies keys by SHA-1",
	"fullPemToPkcs12":     "the encoder identifies keys by SHA-1",
	"fullPemToPkcs12Pass": "the encoder identifies keys by SHA-1",
}

// fipsCases are further calls, because the result depends on the arguments.
var fipsCases = map[string]struct {
	reason, call string
	// refused is the function that fails; empty if the call is allowed.
	refused string
}{
	"Case:KeyRSA":       {"an RSA key is allowed", `{{ genPrivateKey "rsa" }}`, ""},
	"Case:KeyECDSA":     {"a key on P-256 is allowed", `{{ genPrivateKey "ecdsa" }}`, ""},
	"Case:KeyEd25519":   {"Ed25519 is allowed", `{{ genPrivateKey "ed25519" }}`, ""},
	"Case:OAEPSHA1":     {"SHA-1 is refused", `{{ .key | rsaDecrypt "RSA-OAEP" "SHA1" .sha1 }}`, "rsaDecrypt"},
	"Case:OAEPShort":    {"an RSA key of 1024 bits is refused", `{{ .short | rsaDecrypt "RSA-OAEP" "SHA256" (repeat 128 "x") }}`, "rsaDecrypt"},
	"Case:OAEPSHA512":   {"SHA-512 is allowed", `{{ .key | rsaDecrypt "RSA-OAEP" "SHA512" .sha512 }}`, ""},
	"Case:ArchiveRC2":   {"RC2 needs SHA-1, which is refused", `{{ pkcs12keyPass "changeit" .legacy }}`, "pkcs12keyPass"},
	"Case:Archive3DES":  {"3DES with SHA-1 is refused", `{{ pkcs12keyPass "changeit" .des3 }}`, "pkcs12keyPass"},
	"Case:ArchivePBES2": {"3DES with SHA-256 is refused", `{{ pkcs12keyPass "changeit" .pbes2 }}`, "pkcs12keyPass"},
	"Case:ArchiveJava":  {"AES with SHA-256 and salts of 20 bytes is allowed", `{{ pkcs12keyPass "changeit" .java }}`, ""},
}

// TestFIPSOnly starts itself again under GODEBUG=fips140=only. The child renders a template for each function. A refused
// call is an error that names the function and the setting; it never ends the process.
func TestFIPSOnly(t *testing.T) {
	if os.Getenv(fipsEnv) != "" {
		printFIPS()
	}
	key, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // It is to be refused.
	if err != nil {
		t.Fatal(err)
	}
	short := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFIPSOnly$")
	child.Env = append(os.Environ(), fipsEnv+"="+string(short), "GODEBUG=fips140=only")
	var stderr strings.Builder
	child.Stderr = &stderr
	out, err := child.Output()
	if err != nil {
		t.Fatalf("the child failed: %v\n%s%s", err, out, stderr.String())
	}
	got, want := map[string]string{}, map[string]string{}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	refusal := func(function string) string { return fmt.Sprintf("function %q: %s", function, fips.Refusal) }
	for name := range fipsRefused {
		want[name] = refusal(name)
	}
	for name, tc := range fipsCases {
		if tc.refused != "" {
			want[name] = refusal(tc.refused)
		}
		if got[name] != want[name] {
			t.Errorf("%s: %s: got error %q, want %q", name, tc.reason, got[name], want[name])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors under fips140=only: -want, +got:\n%s", diff)
	}
}

// printFIPS prints the errors of all calls as JSON, and exits.
func printFIPS() {
	readCalls()
	for name, file := range map[string]string{"sha1": "oaep-sha1.bin", "sha512": "oaep-sha512.bin", "legacy": "legacy.p12", "des3": "des3.p12", "pbes2": "des3-pbes2.p12", "java": "java.p12"} {
		b, err := os.ReadFile(filepath.Join("cryptofuncs", "testdata", file))
		if err != nil {
			giveUp("%v", err)
		}
		callValues[name] = string(b)
	}
	callValues["short"] = os.Getenv(fipsEnv)
	if fips.Mode() != "only" {
		giveUp("the mode is %s", fips.Mode())
	}
	for name, c := range fipsCases {
		calls[name] = c.call
	}
	failed := map[string]string{}
	for name, text := range calls {
		_, err := engine.Execute("key", text, callValues, template.NewBudget())
		var e *template.Error
		if errors.As(err, &e) {
			failed[name] = e.Reason
		}
	}
	out, err := json.MarshalIndent(failed, "", "\t")
	if err != nil {
		giveUp("%v", err)
	}
	fmt.Printf("%s\n", out)
	os.Exit(0)
}
