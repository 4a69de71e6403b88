package cryptofuncs

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
)

// fixture returns files of testdata, which make.sh there creates.
func fixture(t testing.TB, names ...string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// openssl runs OpenSSL with an input. These tests compare with other tools, so they need it.
func openssl(t testing.TB, input string, args ...string) string {
	t.Helper()
	out, err := run(input, "openssl", args...)
	if errors.Is(err, exec.ErrNotFound) {
		t.Fatal("these tests compare with openssl; install OpenSSL 3")
	}
	if err != nil {
		t.Fatalf("openssl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func run(input, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return "", errors.Join(err, errors.New(failed.String()))
	}
	return out.String(), nil
}

// call calls a function by its name, like a template.
func call(name string, args ...string) (any, error) {
	values := make([]reflect.Value, 0, len(args))
	for _, a := range args {
		values = append(values, reflect.ValueOf(a))
	}
	out := reflect.ValueOf(Functions()[name]).Call(values)
	err, _ := out[1].Interface().(error)
	return out[0].Interface(), err
}

// A result is the result of a function. Of an error it has only the part that a test expects.
type result struct {
	Value any
	Err   string
}

// resultOf calls a function. If its error contains part, the result has part in place of the error.
func resultOf(part, name string, args ...string) result {
	v, err := call(name, args...)
	switch {
	case err == nil:
		return result{Value: v}
	case part != "" && strings.Contains(err.Error(), part):
		return result{Value: v, Err: part}
	}
	return result{Value: v, Err: err.Error()}
}

func TestFunctions(t *testing.T) {
	one := func(string) (string, error) { return "", nil }
	two := func(_, _ string) (string, error) { return "", nil }
	three := func(_, _, _ string) (string, error) { return "", nil }
	four := func(_, _, _, _ string) (string, error) { return "", nil }
	list := func(string) ([]string, error) { return nil, nil }
	want := map[string]string{}
	for name, f := range map[string]any{
		"pkcs12key": one, "pkcs12keyPass": two, "pkcs12cert": one, "pkcs12certPass": two,
		"pemToPkcs12": two, "pemToPkcs12Pass": three, "fullPemToPkcs12": two, "fullPemToPkcs12Pass": three,
		"pemTruststoreToPKCS12": one, "pemTruststoreToPKCS12Pass": two,
		"filterPEM": two, "filterCertChain": two, "certSANs": list,
		"jwkPublicKeyPem": one, "jwkPrivateKeyPem": one, "rsaDecrypt": four,
	} {
		want[name] = reflect.TypeOf(f).String()
	}
	got := map[string]string{}
	for name, f := range Functions() {
		got[name] = reflect.TypeOf(f).String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Functions(): -want, +got:\n%s", diff)
	}
}

// TestPipelines checks the order of arguments, which must not change: templates pass the last one through a pipe.
func TestPipelines(t *testing.T) {
	cases := map[string]struct {
		reason   string
		template string
		want     string
	}{
		"FilterPEM": {
			reason:   "The type precedes the PEM.",
			template: `{{ .pair | filterPEM "CERTIFICATE" }}`,
			want:     fixture(t, "leaf.pem"),
		},
		"FilterCertChain": {
			reason:   "The part precedes the PEM.",
			template: `{{ .issuers | filterCertChain "root" }}`,
			want:     fixture(t, "root.pem"),
		},
		"KeyOfArchive": {
			reason:   "The password precedes the archive.",
			template: `{{ .archive | pkcs12keyPass "changeit" }}`,
			want:     fixture(t, "rsa.pem"),
		},
		"CertificatesOfArchive": {
			reason:   "The password precedes the archive.",
			template: `{{ .archive | pkcs12certPass "changeit" | filterCertChain "leaf" }}`,
			want:     fixture(t, "leaf.pem"),
		},
		"RoundTrip": {
			reason:   "The order is certificate, key, password. A new archive is base64; an archive to read is bytes.",
			template: `{{ pemToPkcs12Pass .pair .key "abc" | b64dec | pkcs12keyPass "abc" }}`,
			want:     fixture(t, "rsa.pem"),
		},
		"TrustStore": {
			reason:   "The order is certificates, password.",
			template: `{{ pemTruststoreToPKCS12Pass .root "abc" | b64dec | pkcs12certPass "abc" }}`,
			want:     fixture(t, "root.pem"),
		},
		"Decrypt": {
			reason:   "The order is scheme, hash, cipher text, key.",
			template: `{{ .key | rsaDecrypt "RSA-OAEP" "SHA256" .ciphertext }}`,
			want:     "hunter2",
		},
		"SANs": {
			reason:   "The names are a list.",
			template: `{{ range certSANs .pair }}{{ . }};{{ end }}`,
			want:     "example.org;*.example.org;192.0.2.1;2001:db8::1;ann@example.org;https://example.org/a;",
		},
	}
	data := map[string]string{
		"pair": fixture(t, "rsa.pem", "leaf.pem"), "key": fixture(t, "rsa.pem"), "issuers": fixture(t, "issuers.pem"),
		"root": fixture(t, "root.pem"), "archive": fixture(t, "modern.p12"), "ciphertext": fixture(t, "oaep-sha256.bin"),
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tmpl := template.Must(template.New("").Funcs(Functions()).Funcs(template.FuncMap{"b64dec": decodeBase64}).Parse(tc.template))
			var out strings.Builder
			if err := tmpl.Execute(&out, data); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, tc.template, diff)
			}
		})
	}
}
