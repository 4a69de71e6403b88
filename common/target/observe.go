package target

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/policy"
)

// Observe returns what the metadata of a Secret tells an ExternalSecret about it; nil means that
// there is no Secret. alive reports whether the ExternalSecret that left a mark still exists.
func Observe(s metav1.Object, externalSecret, module string, alive func(policy.Mark) bool) policy.Target {
	if s == nil {
		return policy.Target{}
	}
	marks := Marks(s.GetAnnotations())
	t := policy.Target{
		Exists:      true,
		Terminating: s.GetDeletionTimestamp() != nil,
		Controller:  metav1.GetControllerOf(s),
		Mark:        marks[externalSecret],
	}
	if owners := s.GetOwnerReferences(); len(owners) > 0 && t.Mark.UID == "" {
		t.Owner = &owners[0]
	}
	for name, m := range marks {
		if name != externalSecret && (t.Rival == "" || name < t.Rival) && alive(m) {
			t.Rival = name
		}
	}
	held := FieldsOf(s.GetManagedFields(), Manager(externalSecret))
	t.Intact = t.Mark.Fields == held.Hash() && s.GetLabels()[ManagedLabel(module)] == "true"
	return t
}

// Reduce strips the metadata of a Secret down to what Observe reads: marks, own labels, owners, and
// the fields held by managers of ExternalSecrets. Memory then follows the number of own keys.
func Reduce(m *metav1.PartialObjectMetadata) {
	maps.DeleteFunc(m.Annotations, func(k, _ string) bool {
		return !strings.HasPrefix(k, v1alpha1.MarkAnnotationPrefix)
	})
	maps.DeleteFunc(m.Labels, func(k, _ string) bool {
		return !strings.HasSuffix(k, v1alpha1.ManagedLabelSuffix)
	})
	var own []metav1.ManagedFieldsEntry
	for _, e := range m.ManagedFields {
		if OfExternalSecret(e.Manager) && e.Subresource == "" {
			own = append(own, metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation, FieldsV1: e.FieldsV1})
		}
	}
	m.ManagedFields = own
}
