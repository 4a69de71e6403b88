package v1alpha1

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Matches reports whether a reference names a Kind. Without apiVersion it matches the Kinds of this project's groups
// only; of apiVersion only the group counts.
func (r *StoreRef) Matches(k schema.GroupKind) bool {
	if r == nil || r.Kind != k.Kind {
		return false
	}
	if r.APIVersion == "" {
		return k.Group == Group || strings.HasSuffix(k.Group, "."+Group)
	}
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return group == k.Group
}

// LeadingStore returns the reference that decides which module reconciles the object: spec.storeRef, else that of the
// first data entry, else that of the first dataFrom entry; nil if there is none.
func (es *ExternalSecret) LeadingStore() *StoreRef {
	switch {
	case es.Spec.StoreRef != nil:
		return es.Spec.StoreRef
	case len(es.Spec.Data) > 0 && es.Spec.Data[0].SourceRef != nil:
		return &es.Spec.Data[0].SourceRef.StoreRef
	case len(es.Spec.Data) == 0 && len(es.Spec.DataFrom) > 0 && es.Spec.DataFrom[0].SourceRef != nil:
		if s := es.Spec.DataFrom[0].SourceRef; s.StoreRef != nil {
			return s.StoreRef
		}
		return es.Spec.DataFrom[0].SourceRef.GeneratorRef
	}
	return nil
}

// ConfigMapTarget is the start of the TargetName of a ConfigMap. No Secret has such a name.
const ConfigMapTarget = "configmaps/"

// TargetName returns the name of the Secret that the object writes. That of a ConfigMap starts with ConfigMapTarget.
func (es *ExternalSecret) TargetName() string {
	name := cmp.Or(es.Spec.Target.Name, es.Name)
	if es.Spec.Target.Kind == TargetConfigMap {
		return ConfigMapTarget + name
	}
	return name
}
