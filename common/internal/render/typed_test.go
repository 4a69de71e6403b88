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

// pemPair returns a certificate and its key in PEM, with the key in PKCS#8.
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
		unpaired = `the keys "tls.crt" and "tls.key" are not a PEM certificate and its private key`
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
		// want is a part of the error; empty for none.
		want string
	}{
		"Unset":      {"A Secret without a type has no rules.", "", nil, ""},
		"Opaque":     {"An opaque Secret has no rules.", corev1.SecretTypeOpaque, m{"a": ""}, ""},
		"OtherType":  {"A type unknown to Kubernetes has no rules.", "example.com/any", nil, ""},
		"RSA":        {"An RSA pair is valid.", tls, pair(rsaCert, rsaPrivate), ""},
		"RSAPKCS1":   {"An RSA pair in the older format is valid.", tls, pair(rsaCert, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))), ""},
		"EC":         {"An EC pair is valid.", tls, pair(ecCert, ecPrivate), ""},
		"ECSEC1":     {"An EC pair in the older format, with the curve before it, is valid.", tls, pair(ecCert, block("EC PARAMETERS", []byte{6, 0})+block("EC PRIVATE KEY", sec1)), ""},
		"Ed25519":    {"An Ed25519 pair is valid.", tls, pair(edCert, edPrivate), ""},
		"Chain":      {"Issuers can follow the leaf.", tls, pair(ecCert+rsaCert, ecPrivate), ""},
		"MoreKeys":   {"Other keys do not matter.", tls, m{"tls.crt": ecCert, "tls.key": ecPrivate, "ca.crt": canary}, ""},
		"ChainWrong": {"An issuer before the leaf is refused.", tls, pair(rsaCert+ecCert, ecPrivate), unpaired},
		"NotMatching": {
			"Certificate and key of different types are refused, which the API server does not do.", tls, pair(rsaCert, ecPrivate), unpaired,
		},
		"NotMatchingEC": {"Certificate and key of different pairs are refused.", tls, pair(ecCert, edPrivate), unpaired},
		"Exchanged":     {"Certificate and key in the wrong order are refused.", tls, pair(ecPrivate, ecCert), unpaired},
		"NotPEM":        {"Values that are not PEM are refused.", tls, pair(canary, canary), unpaired},
		"DamagedKey":    {"A damaged key is refused.", tls, pair(ecCert, block("PRIVATE KEY", []byte(canary))), unpaired},
		"Empty":         {"Empty values are refused.", tls, pair("", ""), unpaired},
		"NoCert":        {"A missing certificate is refused.", tls, m{"tls.key": canary}, `it needs the key "tls.crt"`},
		"NoKey":         {"A missing key is refused.", tls, m{"tls.crt": canary}, `it needs the key "tls.key"`},
		"LargeKey":      {"A private key that is too large to be checked is refused.", tls, pair(ecCert, strings.Repeat(canary, 4000)), `the value of the key "tls.key" has 48000 bytes, and only values of at most 32768 are checked`},

		"Docker":        {"A JSON object is valid.", docker, m{".dockerconfigjson": `{"auths":{"r":{"auth":"` + canary + `"}}}`}, ""},
		"DockerEmpty":   {"An empty JSON object is valid.", docker, m{".dockerconfigjson": " {}\n"}, ""},
		"DockerMissing": {"A missing key is refused.", docker, m{".dockercfg": "{}"}, `it needs the key ".dockerconfigjson"`},
		"DockerText":    {"Text is not JSON.", docker, m{".dockerconfigjson": canary}, `the value of the key ".dockerconfigjson" is not a JSON object`},
		"DockerList":    {"A list is not an object.", docker, m{".dockerconfigjson": `["` + canary + `"]`}, `is not a JSON object`},
		"DockerNull":    {"null is not an object.", docker, m{".dockerconfigjson": `null`}, `is not a JSON object`},
		"DockerHalf":    {"A truncated object is not JSON.", docker, m{".dockerconfigjson": `{"auths":{"` + canary}, `is not a JSON object`},
		"DockerTwo":     {"Two objects are not JSON.", docker, m{".dockerconfigjson": `{}{}`}, `is not a JSON object`},
		"DockerNothing": {"An empty value is not JSON.", docker, m{".dockerconfigjson": ``}, `is not a JSON object`},
		"Cfg":           {"The older format is a JSON object, too.", cfg, m{".dockercfg": `{"r":{}}`}, ""},
		"CfgMissing":    {"The older format has its own key.", cfg, m{".dockerconfigjson": "{}"}, `it needs the key ".dockercfg"`},
		"CfgText":       {"Text is not JSON in the older format, either.", cfg, m{".dockercfg": canary}, `the value of the key ".dockercfg" is not a JSON object`},

		"Basic":         {"A name and a password are valid.", basic, m{"username": "a", "password": canary}, ""},
		"BasicUser":     {"A name alone is valid.", basic, m{"username": ""}, ""},
		"BasicPassword": {"A password alone is valid.", basic, m{"password": ""}, ""},
		"BasicNone":     {"A name or a password is needed.", basic, m{"user": canary}, `it needs the key "username" or "password"`},
		"SSH":           {"A key is valid; its format is not checked.", ssh, m{"ssh-privatekey": canary}, ""},
		"SSHMissing":    {"A missing key is refused.", ssh, m{"id_rsa": canary}, `it needs the key "ssh-privatekey" with a value`},
		"SSHEmpty":      {"An empty key is refused, as by the API server.", ssh, m{"ssh-privatekey": ""}, `it needs the key "ssh-privatekey" with a value`},
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
			wantError(t, tc.reason, err, provider.Invalid, "the content is not valid for a Secret of type "+string(tc.kind)+": ", tc.want)
		})
	}
}
