package inspect

import (
	"cmp"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// TargetOf returns the Kind and the name of what an ExternalSecret writes.
func TargetOf(es *v1alpha1.ExternalSecret) (kind v1alpha1.TargetKind, name string) {
	return cmp.Or(es.Spec.Target.Kind, v1alpha1.TargetSecret), cmp.Or(es.Spec.Target.Name, es.Name)
}

// Targets returns a reader of what ExternalSecrets write, by their TargetName. It returns a ConfigMap as a Secret.
func Targets(r client.Reader) client.Reader {
	return target.ConfigMapReader{Reader: r}
}

// Manifest returns the object for a result of Render: the Secret itself, or the ConfigMap that it stands for.
func Manifest(es *v1alpha1.ExternalSecret, s *corev1.Secret) (client.Object, error) {
	if es.Spec.Target.Kind != v1alpha1.TargetConfigMap {
		return s, nil
	}
	m, err := target.AsConfigMap(s)
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m, err
}

// checkConfigMap returns an error for what the API server refuses for a ConfigMap; nil for a Secret.
func checkConfigMap(es *v1alpha1.ExternalSecret) error {
	if es.Spec.Target.Kind != v1alpha1.TargetConfigMap {
		return nil
	}
	if t := es.Spec.Target.Template; t != nil && t.Type != "" {
		return errors.New("spec.target.template.type: a ConfigMap has no type; remove it")
	}
	for i, e := range es.Spec.DataFrom {
		if e.SourceRef != nil && e.SourceRef.GeneratorRef != nil {
			return fmt.Errorf("spec.dataFrom[%d].sourceRef.generatorRef: generated values are secret; write them to a Secret", i)
		}
	}
	return nil
}
