package operator

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/direct-secrets/direct-secrets/common/testing/controlplane"
)

// issue writes a certificate with a name into a folder, and returns the authority that signed it.
func issue(t *testing.T, dir, name string) []byte {
	t.Helper()
	crt, key, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, raw := range map[string][]byte{"tls.crt": crt, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, file), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return crt
}

// TestMetricsCertificate verifies the metrics endpoint by the certificate in --metrics-cert-dir, and after its renewal.
func TestMetricsCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := issue(t, dir, "first.svc")
	o := New("provider-fake", "fake.direct-secrets.io")
	o.flags.MetricsAddress, o.flags.MetricsAuth, o.flags.MetricsCertDir = "127.0.0.1:0", true, dir
	opts, err := o.metrics()
	if err != nil {
		t.Fatal(err)
	}
	server, err := metricsserver.NewServer(opts, &rest.Config{Host: "https://127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := server.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	verify := func(name string) {
		t.Helper()
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		controlplane.Eventually(t, func() string {
			addr := server.(interface{ GetBindAddr() string }).GetBindAddr()
			conn, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: name}}).DialContext(t.Context(), "tcp", addr)
			if err != nil {
				return err.Error()
			}
			if err := conn.Close(); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	verify("first.svc")
	authority = issue(t, dir, "second.svc")
	verify("second.svc")
}

// TestMetricsCertificateMissing checks that the endpoint never falls back to a self-signed certificate.
func TestMetricsCertificateMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := New("provider-fake", "fake.direct-secrets.io")
	o.flags.MetricsAuth, o.flags.MetricsCertDir = true, dir
	if _, err := o.metrics(); err == nil || !strings.Contains(err.Error(), "--metrics-cert-dir") || !strings.Contains(err.Error(), dir) {
		t.Errorf("metrics(): got %v, want an error that names the flag and the folder", err)
	}
}

// TestMetricsCertificateNeedsAuth checks that a certificate without HTTPS is refused.
func TestMetricsCertificateNeedsAuth(t *testing.T) {
	t.Parallel()
	o := New("provider-fake", "fake.direct-secrets.io")
	set := flag.NewFlagSet("module", flag.ContinueOnError)
	o.flags.Bind(set)
	if err := set.Parse([]string{"--metrics-cert-dir=/certs"}); err != nil {
		t.Fatal(err)
	}
	if err := o.flags.Check(); err == nil || !strings.Contains(err.Error(), "--metrics-auth") {
		t.Errorf("Check(): got %v, want an error that names --metrics-auth", err)
	}
}
