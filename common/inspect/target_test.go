package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// TestManifest holds that the result of Render becomes an object that the API server accepts.
func TestManifest(t *testing.T) {
	t.Parallel()
	immutable := true
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "env", Labels: map[string]string{"team": "shop"}}
	named := meta
	named.Name = v1alpha1.ConfigMapTarget + meta.Name
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Data: map[string][]byte{"a": {255}}}
	cases := map[string]struct {
		reason string
		kind   v1alpha1.TargetKind
		from   *corev1.Secret
		want   client.Object
		err    bool
	}{
		"Unset":  {reason: "without a Kind it is a Secret", from: secret, want: secret},
		"Secret": {reason: "a Secret can have any bytes", kind: v1alpha1.TargetSecret, from: secret, want: secret},
		"ConfigMap": {
			reason: "a ConfigMap has its own name and no type", kind: v1alpha1.TargetConfigMap,
			from: &corev1.Secret{TypeMeta: secret.TypeMeta, ObjectMeta: named, Data: map[string][]byte{"a": []byte("x")}, Type: corev1.SecretTypeOpaque, Immutable: &immutable},
			want: &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{"a": "x"}, Immutable: &immutable},
		},
		"NotText": {reason: "a ConfigMap has text only", kind: v1alpha1.TargetConfigMap, from: &corev1.Secret{ObjectMeta: named, Data: map[string][]byte{"a": {255}}}, err: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Manifest(&v1alpha1.ExternalSecret{Spec: v1alpha1.ExternalSecretSpec{Target: v1alpha1.Target{Kind: tc.kind}}}, tc.from)
			if (err != nil) != tc.err {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if tc.err {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
