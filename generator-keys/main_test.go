package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-keys/manifests"
	"github.com/direct-secrets/direct-secrets/generator-keys/sshkey"
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
		"RSALarge":  {reason: "The largest RSA key is accepted.", key: key{KeyType: "rsa", KeySize: 8192}},
		"ECDSA":     {reason: "Every curve is accepted.", key: key{KeyType: "ecdsa", KeySize: 521}},
		"Ed25519":   {reason: "The default type can be set.", key: key{KeyType: "ed25519"}, text: "größer"},
		"RSAShort":  {reason: "A short RSA key is rejected.", key: key{KeyType: "rsa", KeySize: 2040}, want: "keySize of an RSA key must be from 2048 to 8192"},
		"RSAOdd":    {reason: "An odd size is rejected.", key: key{KeyType: "rsa", KeySize: 2049}, want: "keySize of an RSA key must be from 2048 to 8192"},
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
