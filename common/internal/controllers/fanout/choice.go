package fanout

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/direct-secrets/direct-secrets/common/apis/v1alpha1"
)

// choice holds the namespaces that a parent selects, by name and by label.
type choice struct {
	names     []string
	selectors []labels.Selector
}

// admits reports whether a namespace is selected. A namespace that is being deleted is not.
func (c choice) admits(ns *metav1.PartialObjectMetadata) bool {
	return ns.DeletionTimestamp == nil && (slices.Contains(c.names, ns.Name) ||
		slices.ContainsFunc(c.selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(ns.Labels)) }))
}

// check returns the namespaces that a parent selects, or what is invalid in its spec. It finds errors that the API
// server would otherwise report in every namespace.
func (k *kinds) check(want desired) (c choice, invalid string) {
	if msgs := utilvalidation.IsDNS1123Subdomain(want.name); len(msgs) > 0 {
		return c, fmt.Sprintf("%q cannot be the name of objects of kind %s: %s", want.name, k.child, msgs[0])
	}
	path := field.NewPath("spec", want.metadataField)
	errs := metavalidation.ValidateLabels(want.metadata.Labels, path.Child("labels"))
	errs = append(errs, validation.ValidateAnnotations(want.metadata.Annotations, path.Child("annotations"))...)
	if len(errs) > 0 {
		return c, errs[0].Error()
	}
	if _, ok := want.metadata.Annotations[v1alpha1.FanOutAnnotation]; ok {
		return c, fmt.Sprintf("%s: %s is reserved for the operator; remove it", path.Child("annotations"), v1alpha1.FanOutAnnotation)
	}
	for i := range want.where.NamespaceSelectors {
		s, err := metav1.LabelSelectorAsSelector(&want.where.NamespaceSelectors[i])
		if err != nil {
			return c, fmt.Sprintf("spec.namespaceSelectors[%d]: invalid label selector; correct its keys, operators and values", i)
		}
		c.selectors = append(c.selectors, s)
	}
	c.names = want.where.Namespaces
	return c, ""
}
