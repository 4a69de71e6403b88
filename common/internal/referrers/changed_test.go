package referrers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

func TestMetadata(t *testing.T) {
	base := metav1.ObjectMeta{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"}}
	cases := map[string]struct {
		reason string
		change func(*metav1.ObjectMeta)
		same   bool
	}{
		"Same":          {"The hash is stable.", func(*metav1.ObjectMeta) {}, true},
		"Request":       {"A refresh request does not count.", func(m *metav1.ObjectMeta) { m.Annotations[v1alpha1.RefreshRequestAnnotation] = "now" }, true},
		"LastApplied":   {"kubectl's copy of the manifest does not count.", func(m *metav1.ObjectMeta) { m.Annotations[corev1.LastAppliedConfigAnnotation] = "{}" }, true},
		"Version":       {"Fields that the API server sets do not count.", func(m *metav1.ObjectMeta) { m.ResourceVersion, m.Generation = "9", 9 }, true},
		"Label":         {"A label counts.", func(m *metav1.ObjectMeta) { m.Labels["l"] = "2" }, false},
		"NewLabel":      {"A label counts.", func(m *metav1.ObjectMeta) { m.Labels["m"] = "" }, false},
		"NoLabel":       {"A label counts.", func(m *metav1.ObjectMeta) { m.Labels = nil }, false},
		"Annotation":    {"An annotation counts.", func(m *metav1.ObjectMeta) { m.Annotations["a"] = "2" }, false},
		"NewAnnotation": {"An annotation counts.", func(m *metav1.ObjectMeta) { m.Annotations["b"] = "" }, false},
		"Swapped":       {"A label is not an annotation.", func(m *metav1.ObjectMeta) { m.Labels, m.Annotations = m.Annotations, m.Labels; m.Labels["x"] = "" }, false},
		"Shifted":       {"The end of a key is not the start of a value.", func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"l1": ""} }, false},
	}
	want := Metadata(&v1alpha1.ExternalSecret{ObjectMeta: base})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			es := &v1alpha1.ExternalSecret{ObjectMeta: *base.DeepCopy()}
			tc.change(&es.ObjectMeta)
			if got := Metadata(es); (got == want) != tc.same {
				t.Errorf("\n%s\nMetadata(): %s before and %s after, want the same: %t", tc.reason, want, got, tc.same)
			}
		})
	}
}
