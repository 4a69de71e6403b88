package target

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// Desired is the Secret that an ExternalSecret wants.
type Desired struct {
	types.NamespacedName
	// Type is empty if any type is accepted: a created Secret is then Opaque.
	Type corev1.SecretType
	// Immutable asks for a Secret that cannot be changed.
	Immutable bool
	Data      map[string][]byte
	Labels    map[string]string
	// Annotations are the wanted annotations, without the mark.
	Annotations map[string]string
	// Owner is nil if the Secret must not have an owner.
	Owner *metav1.OwnerReference
	// Mark is the mark without its hashes; Seal sets them.
	Mark policy.Mark
}

// Content is what was rendered for a Secret.
type Content struct {
	Data                map[string][]byte
	Labels, Annotations map[string]string
}

// DesiredOf returns the Secret that an ExternalSecret wants, without the labels of its stores. module is the API group of
// the module. owns is true if the Secret must have an ownerReference.
func DesiredOf(es *v1alpha1.ExternalSecret, module string, owns bool, c Content) Desired {
	t := es.Spec.Target
	d := Desired{
		NamespacedName: types.NamespacedName{Namespace: es.Namespace, Name: es.TargetName()},
		Immutable:      t.Immutable,
		Data:           c.Data,
		Labels:         map[string]string{},
		Annotations:    c.Annotations,
		Mark:           policy.Mark{Name: es.Name, UID: es.UID, Generation: es.Generation, Module: module, Policy: t.CreationPolicy},
	}
	maps.Copy(d.Labels, c.Labels)
	d.Labels[ManagedLabel(module)] = "true"
	switch shared := t.CreationPolicy == v1alpha1.CreateMerge || t.CreationPolicy == v1alpha1.CreateCreateOrMerge; {
	case t.Template != nil && t.Template.Type != "":
		d.Type = corev1.SecretType(t.Template.Type)
	case !shared: // Another client may have created a shared Secret, with its own type.
		d.Type = corev1.SecretTypeOpaque
	}
	if owns {
		owner := OwnerOf(es)
		d.Owner = &owner
	}
	return d
}
