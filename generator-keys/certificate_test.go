package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/generator-keys/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/generator-keys/manifests"
)

// TestRenewBefore replaces a certificate before it expires, without a request. The operator replaces values every 10s at
// most.
func TestRenewBefore(t *testing.T) {
	const ns = "renew-before"
	suite.For(t).Namespace(ns, nil)
	suite.Start(t, "generator-keys", manifests.Permissions, newOperator)
	g, _ := certificates(ns, "tls", v1alpha1.TLSCertificateSettings{DNSNames: []string{"shop.example.com"}, Duration: "2m", RenewBefore: "108s"})
	suite.For(t).Create(g)
	es := operatortest.Generated(ns, "tls", "TLSCertificate", "tls")
	suite.For(t).Create(es)
	first, at := suite.For(t).Synced(es)["tls.crt"], time.Now()
	controlplane.Eventually(t, func() string {
		if suite.For(t).In(ns).Data("tls")["tls.crt"] == first {
			return "the certificate is not replaced"
		}
		return ""
	})
	if after := time.Since(at); after < 9*time.Second || after > 40*time.Second { // 12s, or up to a tenth earlier.
		t.Errorf("the certificate was replaced after %s, want about 12s", after)
	}
	suite.For(t).End(es)
}

// TestAuthority reads the authority from a Secret: the namespaced Kind in its own namespace only.
func TestAuthority(t *testing.T) {
	const ns, other = "authority", "authority-elsewhere"
	suite.For(t).Namespace(ns, nil)
	suite.For(t).Namespace(other, nil)
	suite.Start(t, "generator-keys", manifests.Permissions, newOperator)
	ca := func(name, namespace string) v1alpha1.TLSCertificateSettings {
		return v1alpha1.TLSCertificateSettings{DNSNames: []string{"shop.example.com"}, CASecretRef: &v1alpha1.CASecretReference{Name: name, Namespace: namespace}}
	}
	secret := &corev1.Secret{ObjectMeta: named(ns, "ca"), Data: authority(t)}
	if err := suite.API.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	own, _ := certificates(ns, "own", ca("ca", ""))
	_, shared := certificates(ns, "shared", ca("ca", ns))
	missing, _ := certificates(ns, "missing", ca("nope", ""))
	foreign, _ := certificates(other, "foreign", ca("ca", ns))
	_, unnamed := certificates(ns, "unnamed", ca("ca", ""))
	cases := map[string]struct {
		reason string
		object provider.Object
		want   string
	}{
		"Own":     {"The namespaced Kind reads in its namespace.", own, "True Valid"},
		"Shared":  {"The cluster Kind reads in the namespace that it names.", shared, "True Valid"},
		"Missing": {"The condition names the field and the Secret.", missing, "False InvalidSpec spec.caSecretRef: Secret authority/nope does not exist"},
		"Foreign": {"The namespaced Kind names no namespace.", foreign, "False InvalidSpec spec.caSecretRef: Secret ca must not name a namespace"},
		"Unnamed": {"The cluster Kind names a namespace.", unnamed, "False InvalidSpec spec.caSecretRef: Secret ca needs a namespace"},
	}
	for name, tc := range cases {
		suite.For(t).Create(tc.object)
		t.Run(name, func(t *testing.T) {
			controlplane.Eventually(t, func() string {
				if condition := suite.For(t).Condition(tc.object); !strings.HasPrefix(condition, tc.want) {
					return tc.reason + "\n" + cmp.Diff(tc.want, condition)
				}
				return ""
			})
		})
	}
	for kind, name := range map[string]string{"TLSCertificate": "own", "ClusterTLSCertificate": "shared"} {
		es := operatortest.Generated(ns, name, kind, name)
		suite.For(t).Create(es)
		data := suite.For(t).Synced(es)
		if diff := cmp.Diff(string(secret.Data["tls.crt"]), data["ca.crt"]); diff != "" {
			t.Errorf("%s: ca.crt is not that of the Secret", kind)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(data["ca.crt"]))
		leaf := parse(t, data["tls.crt"])
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "shop.example.com"}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		suite.For(t).End(es)
	}
}

// authority returns the data of a Secret with a new authority.
func authority(t *testing.T) map[string][]byte {
	t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * 365 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// parse returns the first of PEM certificates.
func parse(t *testing.T, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		t.Fatal("there is no certificate")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
