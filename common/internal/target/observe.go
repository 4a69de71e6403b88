package target

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/policy"
)

// Identity is the ExternalSecret that observes a Secret.
type Identity struct {
	Name string
	UID  types.UID
	// Module is the API group of the observing module.
	Module string
	// Exclusive is true if it shares the Secret with no other ExternalSecret, unless it wrote first.
	Exclusive bool
}

// Peers knows which ExternalSecrets exist. It reports unknown ones as existing, so that nothing is taken from them.
type Peers interface {
	// Exists reports whether an ExternalSecret with that name and uid exists.
	Exists(ctx context.Context, name string, uid types.UID) bool
	// Writes reports whether an ExternalSecret with that name and uid exists and writes the Secret.
	Writes(ctx context.Context, name string, uid types.UID, secret string) bool
}

// Observe returns the state of a Secret, from the view of an ExternalSecret; s is nil if there is no Secret. For a
// *corev1.Secret, read live, it also fills the fields that need the data.
func Observe(ctx context.Context, s metav1.Object, self Identity, peers Peers) policy.Target {
	if s == nil {
		return policy.Target{}
	}
	marks, keys := Marks(s.GetAnnotations()), markKeys(s.GetAnnotations())
	held := FieldsOf(s.GetManagedFields(), Manager(self.Name))
	t := policy.Target{
		Exists:      true,
		Terminating: s.GetDeletionTimestamp() != nil,
		Crowded:     len(keys) > MaxMarks || len(keys) == MaxMarks && !slices.Contains(keys, MarkKey(self.Name)),
		Mark:        marks[self.Name],
		Holds:       len(held.Data) > 0,
		Sealed:      held.Immutable,
		Watched:     s.GetLabels()[ManagedLabel(self.Module)] == "true",
	}
	t.Intact = t.Mark.Fields == held.Hash() && t.Watched
	t.Owned, t.Foreign = owners(ctx, s.GetOwnerReferences(), self, t.Mark, peers)
	for name, m := range marks {
		if self.Exclusive && name != self.Name && (t.OtherWriter == "" || name < t.OtherWriter) && peers.Writes(ctx, name, m.UID, s.GetName()) {
			t.OtherWriter = name
		}
	}
	if live, ok := s.(*corev1.Secret); ok {
		t.Fixed = live.Type != corev1.SecretTypeOpaque || (live.Immutable != nil && *live.Immutable)
		t.Others = sharesKeys(live, self, held.Data)
	}
	return t
}

// sharesKeys reports whether a Secret has keys that the object does not hold alone.
func sharesKeys(live *corev1.Secret, self Identity, held []string) bool {
	others := fieldpath.NewSet()
	for _, e := range live.ManagedFields {
		if e.Manager != Manager(self.Name) {
			others = others.Union(decode(e))
		}
	}
	for k := range live.Data {
		if !slices.Contains(held, k) || others.Has(fieldpath.MakePathOrDie("data", k)) {
			return true
		}
	}
	return false
}

// owners reports whether an ownerReference names the object, and returns the reference of another owner. Without our
// mark that is any other owner; with it, only a controller. A deleted ExternalSecret owns nothing. One with our name is
// deleted, or it is the current one and we are outdated; in that case the fence stops the write.
func owners(ctx context.Context, refs []metav1.OwnerReference, self Identity, mark policy.Mark, peers Peers) (owned bool, foreign *metav1.OwnerReference) {
	for i, r := range refs {
		controls := r.Controller != nil && *r.Controller
		switch {
		case r.UID == self.UID:
			owned = owned || controls
		case mark.UID != "" && !controls:
		case ofExternalSecret(r) && (r.Name == self.Name || !peers.Exists(ctx, r.Name, r.UID)):
		case foreign == nil || controls:
			foreign = &refs[i]
		}
	}
	return owned, foreign
}

// ofExternalSecret reports whether an ownerReference names an ExternalSecret.
func ofExternalSecret(r metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return group == v1alpha1.Group && r.Kind == "ExternalSecret"
}

// Reduce strips the metadata of a Secret to what Observe reads: marks, own labels, owners, and the fields of
// ExternalSecrets' managers. Memory use then depends only on the number of own keys. If there are more than MaxMarks
// marks, it keeps only their names, up to one more than the limit.
func Reduce(m *metav1.PartialObjectMetadata) {
	keep := map[string]string{}
	if part, ok := m.Annotations[v1alpha1.PartAnnotation]; ok {
		keep[v1alpha1.PartAnnotation] = part
	}
	keys := markKeys(m.Annotations)
	crowded := len(keys) > MaxMarks
	if crowded {
		slices.Sort(keys) // Keeps the same ones each time.
		keys = keys[:MaxMarks+1]
	}
	for _, k := range keys {
		if keep[k] = m.Annotations[k]; crowded {
			keep[k] = ""
		}
	}
	m.Annotations = keep
	maps.DeleteFunc(m.Labels, func(k, _ string) bool {
		return !strings.HasSuffix(k, v1alpha1.ManagedLabelSuffix) && k != v1alpha1.PartLabel
	})
	var own []metav1.ManagedFieldsEntry
	for _, e := range m.ManagedFields {
		if OfExternalSecret(e.Manager) && e.Subresource == "" {
			own = append(own, metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation, FieldsV1: e.FieldsV1})
		}
	}
	m.ManagedFields = own
}
