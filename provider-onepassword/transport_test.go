package main

import (
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	common "github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
	"github.com/direct-secrets/direct-secrets/common/testing/operatortest"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/manifests"
)

// TestTransport reads from a server with a private authority, and from one without TLS.
func TestTransport(t *testing.T) {
	const ns = "transport"
	lender := httptest.NewTLSServer(nil) // The test only uses its certificate.
	lender.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: lender.Certificate().Raw})
	secured := start(t, emulator.WithTLS(&tls.Config{Certificates: lender.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	untrusted := start(t, emulator.WithTLS(&tls.Config{Certificates: lender.TLS.Certificates, MinVersion: tls.VersionTLS12}))
	plain := start(t)
	for _, srv := range []*emulator.Server{secured, untrusted, plain} {
		srv.Put(emulator.DefaultVault, "db", map[string]string{"password": "a"}, nil)
	}
	c := suite.For(t)
	c.Namespace(ns, nil)
	here := c.In(ns)
	here.Source("onepassword", map[string]string{"token": emulator.DefaultToken})
	here.Source("authority", map[string]string{"ca.crt": string(authority)})
	suite.Start(t, "provider-onepassword", manifests.Permissions, newOperator)
	cases := map[string]struct {
		reason string
		url    string
		change func(*spec)
		want   string // the beginning of the condition of the store
		part   string // a part of its message
	}{
		"bundle": {"An authority in the spec is trusted.", secured.URL(), func(s *spec) { s.CABundle = authority }, "True Valid", ""},
		"secret": {"An authority in a Secret is trusted.", secured.URL(), func(s *spec) {
			s.CAProvider = &common.CAProvider{Type: common.CAProviderSecret, SecretKeySelector: common.SecretKeySelector{Name: "authority", Key: "ca.crt"}}
		}, "True Valid", ""},
		"unknown": {"Another authority is not trusted.", untrusted.URL(), func(*spec) {}, "Unknown Unreachable", "the server's certificate is signed by an authority that is not trusted; correct spec.caBundle"},
		"plain":   {"The condition says that the traffic is not encrypted.", strings.Replace(plain.URL(), "127.0.0.1", "0.0.0.0", 1), func(s *spec) { s.AllowPlainHTTP = true }, "True Valid", "spec.allowPlainHTTP: the token and all values are sent without TLS"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			here := suite.For(t).In(ns)
			s := specFor(tc.url, "", emulator.DefaultVault)
			tc.change(&s)
			store := newStore(ns, name, s)
			here.Create(store)
			controlplane.Eventually(t, func() string {
				if got := here.Condition(store); !strings.HasPrefix(got, tc.want) || !strings.Contains(got, tc.part) {
					return tc.reason + " The condition is " + got
				}
				return ""
			})
			if strings.HasPrefix(tc.want, "True") {
				here.Create(operatortest.ExternalSecret(ns, name, "OnePasswordConnect", name, "db", "password"))
				here.WantSecret(name, "password", "a")
			}
		})
	}
	if calls := untrusted.Calls(); len(calls) > 0 {
		t.Errorf("a server that is not trusted got the token: %+v", calls)
	}
}
