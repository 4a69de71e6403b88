package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-keys/basicauth"
	"github.com/direct-secrets/direct-secrets/generator-keys/manifests"
	"github.com/direct-secrets/direct-secrets/generator-keys/sshkey"
	"github.com/direct-secrets/direct-secrets/generator-keys/tlscertificate"
)

var suite operatortest.Suite

func TestMain(m *testing.M) { suite.Main(m, v1alpha1.AddToScheme, manifests.CRDs) }

func TestCRDs(t *testing.T) { operatortest.CheckCRDs(t, manifests.CRDs) }

func TestExamples(t *testing.T) {
	examples, err := manifests.Examples.ReadDir("examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range examples {
		suite.Examples(t, operatortest.Example(t, manifests.Examples, file.Name()))
	}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// sshKeys returns an object of each Kind.
func sshKeys(namespace, name string, s v1alpha1.SSHKeySettings) (*v1alpha1.SSHKey, *v1alpha1.ClusterSSHKey) {
	spec := v1alpha1.SSHKeySpec{SSHKeySettings: s}
	return &v1alpha1.SSHKey{ObjectMeta: named(namespace, name), Spec: spec},
		&v1alpha1.ClusterSSHKey{ObjectMeta: named("", name), Spec: v1alpha1.ClusterSSHKeySpec{SSHKeySpec: spec}}
}

// uuids returns an object of each Kind.
func uuids(namespace, name string, s common.GeneratorSpec) (*v1alpha1.UUID, *v1alpha1.ClusterUUID) {
	spec := v1alpha1.UUIDSpec{GeneratorSpec: s}
	return &v1alpha1.UUID{ObjectMeta: named(namespace, name), Spec: spec},
		&v1alpha1.ClusterUUID{ObjectMeta: named("", name), Spec: v1alpha1.ClusterUUIDSpec{UUIDSpec: spec}}
}

// basicAuths returns an object of each Kind.
func basicAuths(namespace, name string, s v1alpha1.BasicAuthSettings) (*v1alpha1.BasicAuth, *v1alpha1.ClusterBasicAuth) {
	spec := v1alpha1.BasicAuthSpec{BasicAuthSettings: s}
	return &v1alpha1.BasicAuth{ObjectMeta: named(namespace, name), Spec: spec},
		&v1alpha1.ClusterBasicAuth{ObjectMeta: named("", name), Spec: v1alpha1.ClusterBasicAuthSpec{BasicAuthSpec: spec}}
}

// certificates returns an object of each Kind.
func certificates(namespace, name string, s v1alpha1.TLSCertificateSettings) (*v1alpha1.TLSCertificate, *v1alpha1.ClusterTLSCertificate) {
	spec := v1alpha1.TLSCertificateSpec{TLSCertificateSettings: s}
	return &v1alpha1.TLSCertificate{ObjectMeta: named(namespace, name), Spec: spec},
		&v1alpha1.ClusterTLSCertificate{ObjectMeta: named("", name), Spec: v1alpha1.ClusterTLSCertificateSpec{TLSCertificateSpec: spec}}
}

// accepts checks that the API server accepts or rejects both objects with an error that contains want, and that the code
// agrees.
func accepts(t *testing.T, reason, want string, own, shared client.Object, connect func() (provider.Generator, error)) {
	t.Helper()
	suite.Accepts(t, reason, own, want)
	suite.Accepts(t, reason, shared, want)
	if _, err := connect(); (err != nil) != (want != "") {
		t.Errorf("%s\nThe error of the code is %v.", reason, err)
	}
}

// TestSSHKeyCRD checks which specs the API server accepts, and that the code agrees.
func TestSSHKeyCRD(t *testing.T) {
	type key = v1alpha1.KeySettings
	cases := map[string]struct {
		reason string
		key    key
		text   string // the comment
		want   string // part of the error
	}{
		"Empty":     {reason: "An empty spec is valid, because every field has a default."},
		"RSA":       {reason: "The smallest RSA key is accepted.", key: key{KeyType: "rsa", KeySize: 2048}, text: "me@shop"},
		"RSALarge":  {reason: "The largest RSA key is accepted.", key: key{KeyType: "rsa", KeySize: 4096}},
		"ECDSA":     {reason: "Every curve is accepted.", key: key{KeyType: "ecdsa", KeySize: 521}},
		"Ed25519":   {reason: "The default type can be set.", key: key{KeyType: "ed25519"}, text: "größer"},
		"RSAShort":  {reason: "A short RSA key is rejected.", key: key{KeyType: "rsa", KeySize: 2040}, want: "keySize of an RSA key must be from 2048 to 4096"},
		"RSAOdd":    {reason: "An odd size is rejected.", key: key{KeyType: "rsa", KeySize: 2049}, want: "keySize of an RSA key must be from 2048 to 4096"},
		"RSATooBig": {reason: "A longer RSA key is rejected.", key: key{KeyType: "rsa", KeySize: 8200}, want: "spec.keySize"},
		"Negative":  {reason: "A negative size is rejected.", key: key{KeyType: "rsa", KeySize: -2048}, want: "keySize of an RSA key"},
		"Curve":     {reason: "An unknown curve is rejected.", key: key{KeyType: "ecdsa", KeySize: 512}, want: "keySize of an ECDSA key must be 256, 384 or 521"},
		"Size":      {reason: "A size without a type is rejected.", key: key{KeySize: 4096}, want: "keySize needs keyType rsa or ecdsa"},
		"OneSize":   {reason: "An Ed25519 key has one size.", key: key{KeyType: "ed25519", KeySize: 256}, want: "keySize needs keyType rsa or ecdsa"},
		"Type":      {reason: "An unknown type is rejected.", key: key{KeyType: "dsa"}, want: "spec.keyType"},
		"Lines":     {reason: "A comment of two lines is rejected.", text: "a\nb", want: "comment must be one line"},
		"Tab":       {reason: "A control character is rejected.", text: "a\tb", want: "comment must be one line"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			own, shared := sshKeys("default", "", v1alpha1.SSHKeySettings{KeySettings: tc.key, Comment: tc.text})
			own.GenerateName, shared.GenerateName = "crd-", "crd-"
			accepts(t, tc.reason, tc.want, own, shared, func() (provider.Generator, error) { return sshkey.Connect(t.Context(), own, nil) })
		})
	}
}

func TestBasicAuthCRD(t *testing.T) {
	cases := map[string]struct {
		reason   string
		settings v1alpha1.BasicAuthSettings
		want     string // part of the error
	}{
		"Name":     {"A name is enough.", v1alpha1.BasicAuthSettings{Username: "a"}, ""},
		"All":      {"The largest values are accepted.", v1alpha1.BasicAuthSettings{Username: strings.Repeat("~", 128), Length: 72, Cost: 12}, ""},
		"Least":    {"The smallest values are accepted.", v1alpha1.BasicAuthSettings{Username: "!", Length: 13, Cost: 10}, ""},
		"NoName":   {"A login has a name.", v1alpha1.BasicAuthSettings{}, "spec.username"},
		"LongName": {"A longer name is rejected.", v1alpha1.BasicAuthSettings{Username: strings.Repeat("n", 129)}, "spec.username"},
		"Colon":    {"A colon ends the name.", v1alpha1.BasicAuthSettings{Username: "a:b"}, "username must be printable ASCII"},
		"Space":    {"A space is rejected.", v1alpha1.BasicAuthSettings{Username: "a b"}, "username must be printable ASCII"},
		"Lines":    {"A line break at the end is rejected.", v1alpha1.BasicAuthSettings{Username: "a\n"}, "username must be printable ASCII"},
		"Comment":  {"A name does not begin a comment.", v1alpha1.BasicAuthSettings{Username: "#a"}, "must not begin with #"},
		"Short":    {"A short password is rejected.", v1alpha1.BasicAuthSettings{Username: "a", Length: 12}, "less than 64 bits"},
		"Long":     {"A longer password than bcrypt reads is rejected.", v1alpha1.BasicAuthSettings{Username: "a", Length: 73}, "spec.length"},
		"Cheap":    {"A low cost is rejected.", v1alpha1.BasicAuthSettings{Username: "a", Cost: 9}, "spec.cost"},
		"Costly":   {"A high cost is rejected.", v1alpha1.BasicAuthSettings{Username: "a", Cost: 13}, "spec.cost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			own, shared := basicAuths("default", "", tc.settings)
			own.GenerateName, shared.GenerateName = "crd-", "crd-"
			accepts(t, tc.reason, tc.want, own, shared, func() (provider.Generator, error) { return basicauth.Connect(t.Context(), own, nil) })
		})
	}
}

func TestTLSCertificateCRD(t *testing.T) {
	type settings = v1alpha1.TLSCertificateSettings
	all := settings{
		CommonName: strings.Repeat("c", 64), DNSNames: []string{"*.shop.example.com", "localhost"}, IPAddresses: []string{"192.0.2.1", "::1"},
		URIs: []string{"spiffe://example.org/shop"}, Duration: "24h", RenewBefore: "8h", Usages: []v1alpha1.Usage{"server auth", "client auth", "code signing", "email protection"},
	}
	cases := map[string]struct {
		reason   string
		settings settings
		want     string // part of the error
	}{
		"DNSName":    {"A DNS name is enough.", settings{DNSNames: []string{"a"}}, ""},
		"CommonName": {"A common name is enough.", settings{CommonName: "a"}, ""},
		"IP":         {"An IP address is enough.", settings{IPAddresses: []string{"::1"}}, ""},
		"URI":        {"A URI is enough.", settings{URIs: []string{"spiffe://a/b"}}, ""},
		"All":        {"All fields together are valid.", all, ""},
		"None":       {"A certificate without a name is rejected.", settings{}, "the certificate has no name"},
		"Control":    {"A control character is rejected.", settings{CommonName: "a\nb"}, "commonName must have no control characters"},
		"Wildcard":   {"Only the first label can be a wildcard.", settings{DNSNames: []string{"a.*"}}, "spec.dnsNames"},
		"IPName":     {"An IP address is no DNS name.", settings{DNSNames: []string{"10.0.0.1"}}, "move it to ipAddresses"},
		"Digits":     {"A DNS name can have digits.", settings{DNSNames: []string{"10.0.0.1.example.com"}}, ""},
		"Space":      {"A space is rejected.", settings{DNSNames: []string{"a b"}}, "spec.dnsNames"},
		"Usage":      {"An unknown usage is rejected.", settings{CommonName: "a", Usages: []v1alpha1.Usage{"any"}}, "spec.usages"},
		"Duration":   {"A duration has a format.", settings{CommonName: "a", Duration: "90d"}, "must be a duration"},
		"Renew":      {"renewBefore has a format.", settings{CommonName: "a", RenewBefore: "30d"}, "must be a duration"},
		"Size":       {"The size of the key is checked.", settings{CommonName: "a", KeySettings: v1alpha1.KeySettings{KeySize: 256}}, "keySize needs keyType"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			own, shared := certificates("default", "", tc.settings)
			own.GenerateName, shared.GenerateName = "crd-", "crd-"
			accepts(t, tc.reason, tc.want, own, shared, func() (provider.Generator, error) { return tlscertificate.Connect(t.Context(), own, nil) })
		})
	}
}
