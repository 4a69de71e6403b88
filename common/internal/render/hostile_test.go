package render

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
)

// maxSpent is how much processor time the rendering of one Secret can take, whatever its templates are. The race
// detector makes some of it more than ten times slower.
const maxSpent = 2 * time.Second * slower

// spent returns the processor time of this process. It does not depend on the other load of the machine.
func spent(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost returns the processor time of do, and the memory that it allocates in total. Other load makes some tries slower; the
// fastest of three counts, and one within bound is enough.
func cost(t testing.TB, bound time.Duration, do func()) (took time.Duration, memory uint64) {
	t.Helper()
	took = math.MaxInt64
	for try := 0; try < 3 && took > bound; try++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := spent(t)
		do()
		took = min(took, spent(t)-start)
		runtime.ReadMemStats(&after)
		memory = after.TotalAlloc - before.TotalAlloc
	}
	return took, memory
}

func archive(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("cryptofuncs", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// jwkOf returns an RSA key as a JWK.
func jwkOf(k *rsa.PrivateKey) string {
	var b strings.Builder
	b.WriteString(`{"kty":"RSA"`)
	for name, n := range map[string]*big.Int{
		"n": k.N, "e": big.NewInt(int64(k.E)), "d": k.D, "p": k.Primes[0], "q": k.Primes[1], "dp": k.Precomputed.Dp, "dq": k.Precomputed.Dq, "qi": k.Precomputed.Qinv,
	} {
		fmt.Fprintf(&b, `,%q:%q`, name, base64.RawURLEncoding.EncodeToString(n.Bytes()))
	}
	return b.String() + "}"
}

// largeKey returns an RSA key of so many bits, whose primes are not prime numbers. The code under test does not check
// that.
func largeKey(t testing.TB, bits uint) string {
	t.Helper()
	n := func(bits uint) *big.Int { return new(big.Int).SetBit(big.NewInt(1), int(bits)-1, 1) }
	p, q := n(bits/2), new(big.Int).Add(n(bits/2), big.NewInt(2))
	der, err := asn1.Marshal(struct {
		Version                     int
		N, E, D, P, Q, Dp, Dq, Qinv *big.Int
	}{0, new(big.Int).Mul(p, q), big.NewInt(65537), n(bits - 1), p, q, n(bits/2 - 1), n(bits/2 - 1), n(bits/2 - 1)})
	if err != nil {
		t.Fatal(err)
	}
	return block("RSA PRIVATE KEY", der)
}

// TestHostile renders Secrets whose templates or values are meant to keep the operator busy.
func TestHostile(t *testing.T) {
	type m = map[string]string
	key, err := rsa.GenerateKey(rand.Reader, 4096)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := pemPair(t, ec)
	// data makes one key of the Secret from text, all makes a hundred keys.
	data := func(text string) v1alpha1.Template { return v1alpha1.Template{Data: m{"k": text}} }
	all := func(text string) v1alpha1.Template {
		tmpl := v1alpha1.Template{Data: m{}}
		for i := range 100 {
			tmpl.Data[fmt.Sprintf("k%02d", i)] = text
		}
		return tmpl
	}
	literals := func(text string) (tmpl v1alpha1.Template) {
		for range 100 {
			tmpl.TemplateFrom = append(tmpl.TemplateFrom, literal(text, ""))
		}
		return tmpl
	}
	often := func(call string) string { return "{{ range 1000 }}{{ $x := " + call + " }}{{ end }}" }
	var lines strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&lines, "k%d: b\n", i)
	}
	values := m{
		"big": strings.Repeat("secret, ", 1<<17), "p12": archive(t, "iterations-600000.p12"), "costly": archive(t, "iterations-2000000.p12"), "jwk": jwkOf(key), "pem": block("A", make([]byte, 700_000)),
		"list": "[" + strings.Repeat("[],", 60_000) + "0]", "lines": lines.String(),
	}
	cases := map[string]struct {
		reason      string
		template    v1alpha1.Template
		class       provider.Class
		wantMessage string
	}{
		"Loop":          {"A loop without end.", data(`{{ range 1000000000000 }}{{ end }}`), provider.Template, "too much work"},
		"Loops":         {"A loop in each key.", all(`{{ range 100000 }}{{ end }}`), provider.Template, "too much work"},
		"Recursion":     {"A template that calls itself.", data(`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`), provider.Template, "more than 100 deep"},
		"Exponential":   {"Structures that double.", all(`{{ $x := list .big }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}`), provider.Template, "larger than"},
		"Output":        {"100 MiB in one value.", data(`{{ range 100 }}{{ $.big }}{{ end }}`), provider.Template, "larger than 1024 KiB"},
		"Outputs":       {"100 MiB in a hundred values.", all(`{{ .big }}`), provider.Template, "too much memory"},
		"Large":         {"The output of a template can be too large for a Secret.", data(`{{ .big }}{{ "" }}`), "", ""},
		"LargeMany":     {"The output of several templates can be too large for a Secret.", v1alpha1.Template{Data: m{"a": "{{ .big }}", "b": "{{ .big }}"}}, provider.Invalid, "2097152 bytes in total"},
		"Regexp":        {"A large expression.", data(`{{ regexMatch (repeat 500 "a{1000}") .big }}`), provider.Template, "too large"},
		"SlowRegexp":    {"A slow expression in each key.", all(`{{ regexFindAll "s.*y|z" .big -1 | len }}`), provider.Template, "too much work"},
		"Archive":       {"An archive with the maximum number of rounds, many times.", data(often(`pkcs12keyPass "changeit" $.p12`)), provider.Template, "too much work"},
		"Archives":      {"Such an archive in each key.", all(`{{ .p12 | pkcs12certPass "changeit" | len }}`), provider.Template, "too much work"},
		"CostlyArchive": {"An archive with more than the maximum number of rounds.", all(`{{ pkcs12keyPass "changeit" .costly }}`), provider.Template, "take too much work"},
		"WrongPassword": {"The first wrong password ends the rendering, so many passwords cannot be tried.", data(often(`pkcs12keyPass "x" $.p12`)), provider.Template, "cannot be opened"},
		"JWK":           {"A large key, many times.", data(often(`jwkPrivateKeyPem $.jwk`)), provider.Template, "too much work"},
		"PublicJWK":     {"A large public key, many times.", data(often(`jwkPublicKeyPem $.jwk`)), provider.Template, "too much work"},
		"FilterPEM":     {"A large block, many times.", data(often(`filterPEM "B" $.pem`)), provider.Template, ""},

		"YAML":        {"A YAML document with many keys, a hundred times.", literals(`{{ repeat 190000 "a: b\n" }}`), provider.Template, "too many elements"},
		"YAMLFew":     {"A YAML document with fewer keys, a hundred times.", literals(`{{ .lines }}`), provider.Template, "too many elements"},
		"YAMLNested":  {"YAML lists in lists.", literals(`a: {{ .list }}`), provider.Template, "a key or value is not a string"},
		"YAMLDeep":    {"Deeply nested YAML.", literals(`a: {{ repeat 100000 "[" }}`), provider.Template, ""},
		"YAMLAliases": {"YAML aliases are not followed.", literals("a: &a [x,x,x]\nb: &b [*a,*a]\nc: [*b,*b]"), provider.Template, "a key or value is not a string"},
		"YAMLLong":    {"Long YAML values, a hundred times.", literals(`a: {{ trunc 1000000 .big }}`), provider.Template, "too many elements"},
		"YAMLComment": {"YAML comments, a hundred times.", literals(`{{ repeat 100000 "#\n" }}`), provider.Template, "too many elements"},
		"YAMLQuotes":  {"YAML escapes, a hundred times.", literals(`a: "{{ repeat 100000 "\\u0041" }}"`), provider.Template, "too many elements"},

		"TLSKey":    {"A private key that is too large to be checked.", v1alpha1.Template{Type: string(corev1.SecretTypeTLS), Data: m{"tls.crt": cert, "tls.key": largeKey(t, 300_000)}}, provider.Invalid, "are checked"},
		"TLSKeyFit": {"The largest private key that is checked.", v1alpha1.Template{Type: string(corev1.SecretTypeTLS), Data: m{"tls.crt": cert, "tls.key": largeKey(t, 40_000)}}, provider.Invalid, "its private key"},
		"TLSBlocks": {"Empty PEM blocks.", v1alpha1.Template{Type: string(corev1.SecretTypeTLS), Data: m{"tls.crt": `{{ repeat 30000 "-----BEGIN A-----\n-----END A-----\n" }}`, "tls.key": ""}}, provider.Invalid, "are not a PEM certificate"},
		"JSONDeep":  {"Deeply nested JSON.", v1alpha1.Template{Type: string(corev1.SecretTypeDockerConfigJson), Data: m{".dockerconfigjson": `{"a":{{ repeat 1000000 "[" }}`}}, provider.Invalid, "is not a JSON object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := Output{Data: map[string][]byte{}, Values: len(values)}
			for k, v := range values {
				read.Data[k] = []byte(v)
			}
			es := external(func(s *v1alpha1.ExternalSecretSpec) { s.Target.Template = &tc.template })
			var err error
			took, _ := cost(t, maxSpent, func() { _, err = Shape(es, Plan{Target: "db"}, read, nil) })
			if tc.class == "" && err != nil {
				t.Errorf("\n%s\nShape(): %v", tc.reason, err)
			}
			if tc.class != "" {
				wantError(t, tc.reason, err, tc.class, "", tc.wantMessage)
			}
			if took > maxSpent {
				t.Errorf("\n%s\nShape() took %v of a processor, want at most %v", tc.reason, took, maxSpent)
			}
			t.Logf("%v, %v", took.Round(time.Millisecond), err)
		})
	}
}
