package scenarios

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/e2e/stack"
	"github.com/direct-secrets/direct-secrets/provider-aws/emulator"
)

// shapingGuides are the pages whose examples are applied.
var shapingGuides = []string{
	"../../docs/guides/shape-a-secret.md",
	"../../docs/guides/templates.md",
	"../../docs/guides/certificates-and-registries.md",
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// examplesOf returns the manifests of a page, in a namespace, by the names of their ExternalSecrets.
func examplesOf(t *testing.T, page, namespace string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	examples := map[string][]byte{}
	for _, block := range yamlBlock.FindAllSubmatch(text, -1) {
		var docs [][]byte
		name := ""
		for _, doc := range stack.Documents(block[1]) {
			o := &unstructured.Unstructured{}
			must(t, yaml.Unmarshal(doc, &o.Object))
			o.SetNamespace(namespace)
			if o.GetKind() == "ExternalSecret" {
				name = o.GetName()
			}
			doc, err = yaml.Marshal(o.Object)
			must(t, err)
			docs = append(docs, doc)
		}
		examples[name] = bytes.Join(docs, []byte("\n---\n"))
	}
	return examples
}

// keyPair returns a certificate and its key, as PEM, and both in a PKCS#12 archive.
func keyPair(t *testing.T, password string) (certificate, key string, archive []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "shop.example.com"},
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"shop.example.com"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	archive, err = pkcs12.Modern2023.Encode(private, parsed, nil, password)
	must(t, err)
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", pkcs8), archive
}

// TestGuides applies every example of the guides to shaping, and checks the resulting Secrets.
func TestGuides(t *testing.T) {
	t.Parallel()
	const ns, password = "guides", "correct horse"
	must(t, shared.CreateNamespace(t.Context(), ns))
	must(t, shared.AWSStore(t.Context(), ns, "prod"))
	certificate, key, archive := keyPair(t, password)
	put := func(name string, value any, tags map[string]string) {
		raw, isText := value.(string)
		if !isText {
			b, err := json.Marshal(value)
			must(t, err)
			raw = string(b)
		}
		shared.AWS.Put(name, []byte(raw), emulator.Tags(tags))
	}
	put("guide/tls", map[string]string{"certificate": certificate, "key": key}, nil)
	put("guide/archive", map[string]string{"archive": base64.StdEncoding.EncodeToString(archive), "password": password}, nil)
	put("guide/registry", map[string]string{"user": "robot", "password": `p"w`}, nil)
	put("guide/ssh", base64.StdEncoding.EncodeToString([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\n")), nil)
	put("guide/database", map[string]any{"host": "db.example", "port": 5432, "user": "shop", "password": "a/b"}, nil)
	put("guide/dev", map[string]string{"password": "d"}, nil)
	put("guide/live", map[string]string{"password": "l"}, nil)
	shop := map[string]string{"team": "shop"}
	put("guide/team/api", map[string]string{"token": "1", "host": "api"}, shop)
	put("guide/team/mail", map[string]string{"host": "mail"}, shop)
	put("guide/team/other", "x", map[string]string{"team": "other"})
	start(t, ns)

	type want struct {
		Type   corev1.SecretType
		Data   map[string]string
		Labels map[string]string
	}
	tls := want{Type: corev1.SecretTypeTLS, Data: map[string]string{"tls.crt": certificate, "tls.key": key}}
	wants := map[string]want{
		"tls":             tls,
		"tls-from-pkcs12": tls,
		"registry": {Type: corev1.SecretTypeDockerConfigJson, Data: map[string]string{
			".dockerconfigjson": `{"auths": {"registry.example.com": {"username": "robot", "password": "p\"w", "auth": "cm9ib3Q6cCJ3"}}}` + "\n",
		}},
		"ssh": {Type: corev1.SecretTypeSSHAuth, Data: map[string]string{"ssh-privatekey": "-----BEGIN OPENSSH PRIVATE KEY-----\n"}},
		"database": {
			Type: corev1.SecretTypeOpaque, Labels: map[string]string{"app.example.com/database": "db.example"},
			Data: map[string]string{"host": "db.example", "port": "5432", "user": "shop", "password": "a/b", "url": "postgres://shop:a%2Fb@db.example:5432/shop"},
		},
		"renamed":      {Type: corev1.SecretTypeOpaque, Data: map[string]string{"DEV_PASSWORD": "d", "LIVE_PASSWORD": "l"}},
		"found":        {Type: corev1.SecretTypeOpaque, Data: map[string]string{"api": `{"host":"api","token":"1"}`, "mail": `{"host":"mail"}`}},
		"found-merged": {Type: corev1.SecretTypeOpaque, Data: map[string]string{"host": "api", "token": "1"}},
		"config":       {Type: corev1.SecretTypeOpaque, Data: map[string]string{"config.yaml": "database:\n  host: db.example\n  password: \"a/b\"\n"}},
	}
	examples := map[string][]byte{}
	for _, guide := range shapingGuides {
		for name, example := range examplesOf(t, guide, ns) {
			if examples[name] != nil {
				t.Fatalf("%s has a second example %q", guide, name)
			}
			examples[name] = example
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(wants)), slices.Sorted(maps.Keys(examples))); diff != "" {
		t.Fatalf("the examples of %v: -want, +got:\n%s", shapingGuides, diff)
	}
	for name, w := range wants {
		must(t, shared.Apply(t.Context(), examples[name]))
		wantReady(t, ns, name, v1alpha1.ReasonSecretSynced)
		s := getSecret(t, ns, name)
		got := want{Type: s.Type, Data: map[string]string{}}
		for k, v := range s.Data {
			got.Data[k] = string(v)
		}
		for k, v := range s.Labels {
			if !strings.Contains(k, v1alpha1.Group) {
				got.Labels = map[string]string{k: v}
			}
		}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", name, diff)
		}
	}
}
