package render

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
)

// pemPair returns a certificate and its key in PEM, the key in PKCS#8.
func pemPair(t testing.TB, key crypto.Signer) (cert, private string) {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	p8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", p8)
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestCheckType(t *testing.T) {
	type m = map[string]string
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	rsaCert, rsaPrivate := pemPair(t, rsaKey)
	ecCert, ecPrivate := pemPair(t, ecKey)
	edCert, edPrivate := pemPair(t, edKey)
	pair := func(cert, key string) m { return m{"tls.crt": cert, "tls.key": key} }
	const (
		unpaired = `the keys "tls.crt" and "tls.key" are not a certificate in PEM and the private key that belongs to it`
		tls      = corev1.SecretTypeTLS
		docker   = corev1.SecretTypeDockerConfigJson
		cfg      = corev1.SecretTypeDockercfg
		basic    = corev1.SecretTypeBasicAuth
		ssh      = corev1.SecretTypeSSHAuth
	)
	cases := map[string]struct {
		reason string
		kind   corev1.SecretType
		data   m
		// want is what the error says; empty means that there is none.
		want string
	}{
		"Unset":      {"A Secret without a type has no rules.", "", nil, ""},
		"Opaque":     {"Nor has an opaque one.", corev1.SecretTypeOpaque, m{"a": ""}, ""},
		"OtherType":  {"Nor one of a type that Kubernetes does not know.", "example.com/any", nil, ""},
		"RSA":        {"A pair of RSA.", tls, pair(rsaCert, rsaPrivate), ""},
		"RSAPKCS1":   {"In the older form.", tls, pair(rsaCert, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))), ""},
		"EC":         {"A pair of EC.", tls, pair(ecCert, ecPrivate), ""},
		"ECSEC1":     {"In the older form, with the curve before it.", tls, pair(ecCert, block("EC PARAMETERS", []byte{6, 0})+block("EC PRIVATE KEY", sec1)), ""},
		"Ed25519":    {"A pair of Ed25519.", tls, pair(edCert, edPrivate), ""},
		"Chain":      {"The leaf comes first, its issuers after it.", tls, pair(ecCert+rsaCert, ecPrivate), ""},
		"MoreKeys":   {"Other keys do not matter.", tls, m{"tls.crt": ecCert, "tls.key": ecPrivate, "ca.crt": canary}, ""},
		"ChainWrong": {"An issuer before the leaf does not do.", tls, pair(rsaCert+ecCert, ecPrivate), unpaired},
		"NotMatching": {
			"The API server would take it, and no server could use it.", tls, pair(rsaCert, ecPrivate), unpaired,
		},
		"NotMatchingEC": {"Of one kind, but of another pair.", tls, pair(ecCert, edPrivate), unpaired},
		"Exchanged":     {"The wrong way round.", tls, pair(ecPrivate, ecCert), unpaired},
		"NotPEM":        {"What is no PEM.", tls, pair(canary, canary), unpaired},
		"DamagedKey":    {"PEM of nothing.", tls, pair(ecCert, block("PRIVATE KEY", []byte(canary))), unpaired},
		"Empty":         {"Empty values are no pair.", tls, pair("", ""), unpaired},
		"NoCert":        {"The certificate is missing.", tls, m{"tls.key": canary}, `it needs the key "tls.crt"`},
		"NoKey":         {"The key is missing.", tls, m{"tls.crt": canary}, `it needs the key "tls.key"`},
		"LargeKey":      {"What takes long is not looked at.", tls, pair(ecCert, strings.Repeat(canary, 4000)), `the value of the key "tls.key" has 48000 bytes, and at most 32768 are looked at`},

		"Docker":        {"A JSON object.", docker, m{".dockerconfigjson": `{"auths":{"r":{"auth":"` + canary + `"}}}`}, ""},
		"DockerEmpty":   {"It may be empty.", docker, m{".dockerconfigjson": " {}\n"}, ""},
		"DockerMissing": {"The key is missing.", docker, m{".dockercfg": "{}"}, `it needs the key ".dockerconfigjson"`},
		"DockerText":    {"Text is no JSON.", docker, m{".dockerconfigjson": canary}, `the value of the key ".dockerconfigjson" is not a JSON object`},
		"DockerList":    {"A list is no object.", docker, m{".dockerconfigjson": `["` + canary + `"]`}, `is not a JSON object`},
		"DockerNull":    {"Nor is null.", docker, m{".dockerconfigjson": `null`}, `is not a JSON object`},
		"DockerHalf":    {"Nor is half of one.", docker, m{".dockerconfigjson": `{"auths":{"` + canary}, `is not a JSON object`},
		"DockerTwo":     {"Nor are two.", docker, m{".dockerconfigjson": `{}{}`}, `is not a JSON object`},
		"DockerNothing": {"Nor is nothing.", docker, m{".dockerconfigjson": ``}, `is not a JSON object`},
		"Cfg":           {"The older form is an object, too.", cfg, m{".dockercfg": `{"r":{}}`}, ""},
		"CfgMissing":    {"Under a key of its own.", cfg, m{".dockerconfigjson": "{}"}, `it needs the key ".dockercfg"`},
		"CfgText":       {"Text is none.", cfg, m{".dockercfg": canary}, `the value of the key ".dockercfg" is not a JSON object`},

		"Basic":         {"A name and a password.", basic, m{"username": "a", "password": canary}, ""},
		"BasicUser":     {"One of them is enough.", basic, m{"username": ""}, ""},
		"BasicPassword": {"Whichever it is.", basic, m{"password": ""}, ""},
		"BasicNone":     {"One of them there must be.", basic, m{"user": canary}, `it needs the key "username" or "password"`},
		"SSH":           {"A key; its form is the client's matter.", ssh, m{"ssh-privatekey": canary}, ""},
		"SSHMissing":    {"The key is missing.", ssh, m{"id_rsa": canary}, `it needs the key "ssh-privatekey", and a value for it`},
		"SSHEmpty":      {"The API server refuses an empty one.", ssh, m{"ssh-privatekey": ""}, `it needs the key "ssh-privatekey", and a value for it`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range tc.data {
				data[k] = []byte(v)
			}
			err := CheckType(tc.kind, data)
			if tc.want == "" {
				if err != nil {
					t.Errorf("\n%s\nCheckType(): %v", tc.reason, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("\n%s\nCheckType(): no error", tc.reason)
			}
			wantError(t, tc.reason, err, provider.Invalid, "a Secret of type "+string(tc.kind)+" cannot be written: ", tc.want)
		})
	}
}
