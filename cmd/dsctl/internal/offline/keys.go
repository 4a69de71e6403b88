package offline

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// Named returns the Secret of an ExternalSecret without values, as far as the spec names the keys. complete is
// false if further keys depend on values. A ConfigMap is returned as by inspect.Render.
func Named(es *v1alpha1.ExternalSecret) (s *corev1.Secret, complete bool) {
	t := es.Spec.Target.Template
	s = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: es.Namespace, Name: es.TargetName()}, Data: map[string][]byte{}, Type: corev1.SecretTypeOpaque}
	shaped := t != nil && len(t.Data)+len(t.TemplateFrom) > 0
	complete = true
	if !shaped || t.MergePolicy == "Merge" {
		for _, e := range es.Spec.Data {
			s.Data[e.SecretKey] = nil
		}
		complete = len(es.Spec.DataFrom) == 0
	}
	if es.Spec.Target.Immutable {
		s.Immutable = &es.Spec.Target.Immutable
	}
	if t == nil {
		return s, complete
	}
	if t.Type != "" {
		s.Type = corev1.SecretType(t.Type)
	}
	s.Labels, s.Annotations = t.Metadata.Labels, t.Metadata.Annotations
	for k := range t.Data {
		s.Data[k] = nil
	}
	return s, complete && len(t.TemplateFrom) == 0
}
