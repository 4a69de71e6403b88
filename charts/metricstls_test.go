package charts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestServiceMonitorTLS checks that Prometheus verifies the endpoint to which it sends its token.
func TestServiceMonitorTLS(t *testing.T) {
	t.Parallel()
	const token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	cases := map[string]struct {
		reason string
		sets   []string
		want   map[string]any
	}{
		"Open": {reason: "without metrics.auth Prometheus sends no token", want: map[string]any{"port": "metrics"}},
		"Secret": {
			reason: "the Secret has the CA, and the certificate has the name of the Service",
			sets:   []string{`global.metrics.auth=true`, `global.metrics.tls.secretName="cert"`},
			want: map[string]any{"port": "metrics", "scheme": "https", "bearerTokenFile": token, "tlsConfig": map[string]any{
				"ca":         map[string]any{"secret": map[string]any{"name": "cert", "key": "ca.crt"}},
				"serverName": "direct-secrets-provider-aws-metrics.direct-secrets.svc",
			}},
		},
		"Own": {
			reason: "a tlsConfig of the user replaces that of the chart",
			sets:   []string{`global.metrics.auth=true`, `global.metrics.tls.secretName="cert"`, `global.metrics.serviceMonitor.tlsConfig={"serverName":"metrics.example.org"}`},
			want: map[string]any{"port": "metrics", "scheme": "https", "bearerTokenFile": token, "tlsConfig": map[string]any{
				"serverName": "metrics.example.org",
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sets := append([]string{`global.metrics.serviceMonitor.enabled=true`}, tc.sets...)
			for _, o := range render(t, umbrella, enable([]string{"provider-aws"}, sets...)) {
				if o.GetKind() != "ServiceMonitor" {
					continue
				}
				got, _, err := unstructured.NestedSlice(o.Object, "spec", "endpoints")
				must(t, err)
				if diff := cmp.Diff([]any{tc.want}, got); diff != "" {
					t.Errorf("%s\nendpoints: -want, +got:\n%s", tc.reason, diff)
				}
				return
			}
			t.Error("there is no ServiceMonitor")
		})
	}
}

// TestMetricsCertificate checks that the pod has the certificate where its flag says.
func TestMetricsCertificate(t *testing.T) {
	t.Parallel()
	got := pod(t, "provider-aws", `global.metrics.auth=true`, `global.metrics.tls.secretName="cert"`)
	mounts := []corev1.VolumeMount{{Name: "direct-secrets-metrics", MountPath: "/etc/direct-secrets/metrics", ReadOnly: true}}
	if diff := cmp.Diff(mounts, got.Spec.Containers[0].VolumeMounts); diff != "" {
		t.Errorf("volumeMounts: -want, +got:\n%s", diff)
	}
	volumes := []corev1.Volume{{Name: "direct-secrets-metrics", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: "cert", Items: []corev1.KeyToPath{{Key: "tls.crt", Path: "tls.crt"}, {Key: "tls.key", Path: "tls.key"}},
	}}}}
	if diff := cmp.Diff(volumes, got.Spec.Volumes); diff != "" {
		t.Errorf("volumes: -want, +got:\n%s", diff)
	}
}
