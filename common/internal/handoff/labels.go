package handoff

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
	"github.com/direct-secrets/direct-secrets/common/internal/presence"
	"github.com/direct-secrets/direct-secrets/common/internal/target"
)

// Labels returns the labels of a part of a module. They mark it as a part, and let its module and the modules that
// reconcile the object watch it.
func Labels(module string, reconcile []presence.Member) []string {
	labels := []string{v1alpha1.PartLabel, target.ManagedLabel(module)}
	for _, m := range reconcile {
		if l := target.ManagedLabel(m.Module); !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
	}
	return labels
}

// Labelled reports whether an object has all the given labels.
func Labelled(o metav1.Object, labels []string) bool {
	return !slices.ContainsFunc(labels, func(l string) bool { return o.GetLabels()[l] != "true" })
}
