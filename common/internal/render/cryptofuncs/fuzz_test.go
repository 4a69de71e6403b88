package cryptofuncs

import (
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// canary is the secret part of an argument.
const canary = "hunter2canary"

// checkError fails the test for an error with a result, of another type, or with a secret.
func checkError(t *testing.T, name string, v any, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var safe interface {
		error
		Safe() string
	}
	if !errors.As(err, &safe) || safe.Safe() != err.Error() {
		t.Fatalf("%s(...): the error is not safe: %T", name, err)
	}
	if strings.Contains(strings.ToLower(err.Error()), canary) {
		t.Errorf("%s(...): the error holds the canary: %v", name, err)
	}
	if !reflect.ValueOf(v).IsZero() {
		t.Errorf("%s(...): a result with the error %v", name, err)
	}
}

// fixtures returns the names of all files in testdata except the scripts.
func fixtures(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && filepath.Ext(e.Name()) != ".sh" {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestCanary checks that no error contains any part of any argument.
func TestCanary(t *testing.T) {
	block := func(blockType, content string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: []byte(content)}))
	}
	archive := fixture(t, "open.p12")
	planted := []string{
		canary,
		strings.ToUpper(canary),
		"-----BEGIN " + canary + "-----",
		"-----BEGIN " + canary + "-----\n-----END x-----",
		"-----BEGIN CERTIFICATE-----\n" + canary + "!\n-----END CERTIFICATE-----",
		block(canary, canary), block("CERTIFICATE", canary), block("PRIVATE KEY", canary), block(canary+" PRIVATE KEY", canary),
		`{"kty":"` + canary + `"}`, `{"` + canary + `":}`, `{"kty":"EC","crv":"` + canary + `"}`, `{"kty":"RSA","n":"` + canary + `","e":"` + canary + `"}`,
		"MI" + canary, "0\x80" + canary, "0\x0d" + canary,
		strings.Replace(archive, "example.org", canary[:11], 1), archive[:200] + canary + archive[200+len(canary):],
		strings.Repeat(canary, maxInput/len(canary)+1),
	}
	leaf, key := fixture(t, "leaf.pem"), fixture(t, "rsa.pem")
	for _, text := range planted {
		everyWay(text, []string{"", canary, leaf + key, fixture(t, "modern.p12")}, func(name string, v any, err error) { checkError(t, name, v, err) })
	}
}

// FuzzFunctions calls a function with arbitrary arguments. It must not panic, take long, return a result with an
// error, or put the canary into an error.
func FuzzFunctions(f *testing.F) {
	names := make([]string, 0, len(Functions()))
	for name := range Functions() {
		names = append(names, name)
	}
	slices.Sort(names)
	leaf, key := fixture(f, "leaf.pem"), fixture(f, "rsa.pem")
	jwks := []string{jwkOf(rsaJWK), jwkOf(ecJWK), jwkOf(edJWK), jwkOf(octJWK)}
	for i, name := range names {
		switch {
		case strings.HasPrefix(name, "pkcs12"):
			for _, file := range fixtures(f) {
				if filepath.Ext(file) == ".p12" && !strings.HasPrefix(file, "iterations") {
					f.Add(byte(i), "changeit", fixture(f, file), "", "")
				}
			}
			f.Add(byte(i), fixture(f, "open.p12"), "", "", "")
			f.Add(byte(i), archiveOf(f, string(bag(f, 1, 8))), "", "", "")
		case strings.HasPrefix(name, "jwk"):
			for _, jwk := range jwks {
				f.Add(byte(i), jwk, "", "", "")
			}
		case name == "rsaDecrypt":
			f.Add(byte(i), "RSA-OAEP", "SHA1", fixture(f, "oaep-sha1.bin"), key)
			f.Add(byte(i), "RSA-OAEP", "SHA512", fixture(f, "oaep-sha512.bin"), fixture(f, "rsa-pkcs1.pem"))
		default:
			for _, file := range fixtures(f) {
				if filepath.Ext(file) == ".pem" {
					f.Add(byte(i), "root", fixture(f, file, "leaf.pem", "issuers.pem"), "changeit", "")
					f.Add(byte(i), fixture(f, "leaf-ec.pem")+leaf, fixture(f, file), "changeit", "")
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, a, b, c, d string) {
		name := names[int(which)%len(names)]
		args := []string{a, b, c, d}[:reflect.TypeOf(Functions()[name]).NumIn()]
		start := spent()
		v, err := call(name, args...)
		if took := spent() - start; took > maxTime {
			t.Errorf("%s(...): took %v", name, took)
		}
		for _, arg := range args {
			if strings.Contains(arg, canary) {
				checkError(t, name, v, err)
				return
			}
		}
		if err != nil {
			checkError(t, name, v, err)
			_, err = call(name, append(slices.Clone(args[:len(args)-1]), args[len(args)-1]+canary)...)
			checkError(t, name, reflect.Zero(reflect.TypeOf(v)).Interface(), err)
		}
	})
}
