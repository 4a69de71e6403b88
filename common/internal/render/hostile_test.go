package render

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
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

// maxSpent is how much time of a processor the rendering of one Secret may take, whatever its templates are.
// The race detector makes much of it slower by more than ten times.
const maxSpent = 2 * time.Second * slower

// spent returns the time of processors that this process has taken. Unlike the time that passes it does not
// depend on what else the machine does.
func spent(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost returns what something takes of processors, and the memory that it takes in all, what it gives back included.
func cost(t testing.TB, do func()) (took time.Duration, memory uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := spent(t)
	do()
	took = spent(t) - start
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

func archive(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("cryptofuncs", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// jwkOf returns an RSA key as JWK.
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

// largeKey returns an RSA key, so to speak, of so many bits. Nobody tests whether its primes are prime.
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

// TestHostile renders Secrets whose templates or values want to keep the operator busy.
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
	// data is what one key of the Secret is made of; all is the same for a hundred keys.
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
		reason   string
		template v1alpha1.Template
		class    provider.Class
		says     string
	}{
		"Loop":          {"A loop without end.", data(`{{ range 1000000000000 }}{{ end }}`), provider.Template, "too much work"},
		"Loops":         {"One in each key.", all(`{{ range 100000 }}{{ end }}`), provider.Template, "too much work"},
		"Recursion":     {"A template that calls itself.", data(`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`), provider.Template, "more than 100 deep"},
		"Exponential":   {"Structures that double.", all(`{{ $x := list .big }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}`), provider.Template, "larger than"},
		"Output":        {"100 MiB in one value.", data(`{{ range 100 }}{{ $.big }}{{ end }}`), provider.Template, "larger than 1024 KiB"},
		"Outputs":       {"100 MiB in a hundred values.", all(`{{ .big }}`), provider.Template, "too much memory"},
		"Large":         {"What templates may yield may still be too large for a Secret.", data(`{{ .big }}{{ "" }}`), "", ""},
		"LargeMany":     {"So may what some of them yield.", v1alpha1.Template{Data: m{"a": "{{ .big }}", "b": "{{ .big }}"}}, provider.Invalid, "2097152 bytes in all"},
		"Regexp":        {"A large expression.", data(`{{ regexMatch (repeat 500 "a{1000}") .big }}`), provider.Template, "too large"},
		"SlowRegexp":    {"A slow one in each key.", all(`{{ regexFindAll "s.*y|z" .big -1 | len }}`), provider.Template, "too much work"},
		"Archive":       {"An archive with as many rounds as are served, again and again.", data(often(`pkcs12keyPass "changeit" $.p12`)), provider.Template, "too much work"},
		"Archives":      {"In each key.", all(`{{ .p12 | pkcs12certPass "changeit" | len }}`), provider.Template, "too much work"},
		"CostlyArchive": {"An archive with more rounds than are served.", all(`{{ pkcs12keyPass "changeit" .costly }}`), provider.Template, "asks for too much work"},
		"WrongPassword": {"Many passwords cannot be tried: the first that is wrong ends it.", data(often(`pkcs12keyPass "x" $.p12`)), provider.Template, "cannot be opened"},
		"JWK":           {"A large key, again and again.", data(often(`jwkPrivateKeyPem $.jwk`)), provider.Template, "too much work"},
		"PublicJWK":     {"Also the public one.", data(often(`jwkPublicKeyPem $.jwk`)), provider.Template, "too much work"},
		"FilterPEM":     {"A large block, again and again.", data(often(`filterPEM "B" $.pem`)), provider.Template, ""},

		"YAML":        {"Many keys, a hundred times.", literals(`{{ repeat 190000 "a: b\n" }}`), provider.Template, "too many elements"},
		"YAMLFew":     {"Not so many keys, a hundred times.", literals(`{{ .lines }}`), provider.Template, "too many elements"},
		"YAMLNested":  {"Lists in lists.", literals(`a: {{ .list }}`), provider.Template, "a key or value is not a string"},
		"YAMLDeep":    {"Deep ones.", literals(`a: {{ repeat 100000 "[" }}`), provider.Template, ""},
		"YAMLAliases": {"Aliases are not followed.", literals("a: &a [x,x,x]\nb: &b [*a,*a]\nc: [*b,*b]"), provider.Template, "a key or value is not a string"},
		"YAMLLong":    {"Long values, a hundred times.", literals(`a: {{ trunc 1000000 .big }}`), provider.Template, "too many elements"},
		"YAMLComment": {"Comments, a hundred times.", literals(`{{ repeat 100000 "#\n" }}`), provider.Template, "too many elements"},
		"YAMLQuotes":  {"Escapes, a hundred times.", literals(`a: "{{ repeat 100000 "\\u0041" }}"`), provider.Template, "too many elements"},

		"TLSKey":    {"A key that nobody could use.", v1alpha1.Template{Type: string(corev1.SecretTypeTLS), Data: m{"tls.crt": cert, "tls.key": largeKey(t, 300_000)}}, provider.Invalid, "are looked at"},
		"TLSKeyFit": {"The largest that is looked at.", v1alpha1.Template{Type: string(corev1.SecretTypeTLS), Data: m{"tls.crt": cert, "tls.key": largeKey(t, 40_000)}}, provider.Invalid, "the private key that belongs to it"},
		"TLSBlocks": {"Blocks of nothing.", v1alpha1.Template{Type: string(corev1.SecretTypeTLS), Data: m{"tls.crt": `{{ repeat 30000 "-----BEGIN A-----\n-----END A-----\n" }}`, "tls.key": ""}}, provider.Invalid, "are not a certificate"},
		"JSONDeep":  {"JSON without end.", v1alpha1.Template{Type: string(corev1.SecretTypeDockerConfigJson), Data: m{".dockerconfigjson": `{"a":{{ repeat 1000000 "[" }}`}}, provider.Invalid, "is not a JSON object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := Output{Data: map[string][]byte{}, Values: len(values)}
			for k, v := range values {
				read.Data[k] = []byte(v)
			}
			es := external(func(s *v1alpha1.ExternalSecretSpec) { s.Target.Template = &tc.template })
			var err error
			took := maxSpent + 1
			for range 3 { // Whoever shares the processor makes it slower, and nobody faster.
				if took <= maxSpent {
					break
				}
				start := spent(t)
				_, err = Shape(es, Plan{Target: "db"}, read, nil)
				took = min(took, spent(t)-start)
			}
			if tc.class == "" && err != nil {
				t.Errorf("\n%s\nShape(): %v", tc.reason, err)
			}
			if tc.class != "" {
				wantError(t, tc.reason, err, tc.class, "", tc.says)
			}
			if took > maxSpent {
				t.Errorf("\n%s\nShape() took %v of a processor, want at most %v", tc.reason, took, maxSpent)
			}
			t.Logf("%v, %v", took.Round(time.Millisecond), err)
		})
	}
}
